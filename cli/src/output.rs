//! What a person or a script reads: results on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Form of the results on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON value.
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorChoice {
    /// When the stream is a terminal and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The two streams and how to write on them.
#[derive(Debug, Clone)]
pub struct Output {
    /// Form of the results.
    pub format: Format,
    /// Below 0 quiet, above 0 verbose.
    pub verbosity: i8,
    /// Whether results are told on stderr, because another command's result follows them.
    results_are_told: bool,
    color_stdout: bool,
    color_stderr: bool,
}

/// The meanings that colour may stress; words always carry them too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Good.
    Success,
    /// To be looked at.
    Warning,
    /// Bad.
    Error,
    /// What can be acted on: a command, a path.
    Accent,
    /// Less important.
    Muted,
    /// A heading.
    Strong,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Success => "32",
            Self::Warning => "33",
            Self::Error => "31",
            Self::Accent => "36",
            Self::Muted => "2",
            Self::Strong => "1",
        }
    }
}

impl Output {
    pub(crate) fn new(format: Format, verbosity: i8, color: ColorChoice, no_color: bool) -> Self {
        let colored = |terminal: bool| match color {
            ColorChoice::Auto => terminal && !no_color,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self {
            format,
            verbosity,
            results_are_told: false,
            color_stdout: colored(io::stdout().is_terminal()),
            color_stderr: colored(io::stderr().is_terminal()),
        }
    }

    /// Makes results text on stderr: what this command says is part of what another one tells.
    pub(crate) fn tell_results(&mut self) {
        self.format = Format::Text;
        self.results_are_told = true;
        self.color_stdout = self.color_stderr;
    }

    /// Whether results are wanted as JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether progress may be drawn on stderr.
    #[must_use]
    pub fn shows_progress(&self) -> bool {
        self.verbosity >= 0 && io::stderr().is_terminal()
    }

    /// `text` in `style`, where stdout is coloured.
    #[must_use]
    pub fn paint(&self, style: Style, text: &str) -> String {
        paint(self.color_stdout, style, text)
    }

    /// `text` in `style`, where stderr is coloured.
    #[must_use]
    pub fn paint_err(&self, style: Style, text: &str) -> String {
        paint(self.color_stderr, style, text)
    }

    /// Writes a line of the result. A closed pipe ends the output silently, as in other tools.
    pub fn line(&self, text: impl AsRef<str>) {
        self.raw(format!("{}\n", text.as_ref()).as_bytes());
    }

    /// Writes text of the result as it is, without a line end.
    pub fn raw(&self, bytes: &[u8]) {
        let _ = match (self.results_are_told, self.verbosity < 0) {
            (false, _) => io::stdout().lock().write_all(bytes),
            (true, false) => io::stderr().lock().write_all(bytes),
            (true, true) => Ok(()),
        };
    }

    /// Writes `value` as the JSON result.
    ///
    /// # Panics
    /// Never for our own types, which always serialize.
    pub fn json<T: Serialize>(&self, value: &T) {
        let text = serde_json::to_string_pretty(value).expect("our own types always serialize");
        self.line(plain_json(&text));
    }

    /// Tells what happens, on stderr, unless quiet.
    pub fn note(&self, text: impl AsRef<str>) {
        if self.verbosity >= 0 {
            let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
        }
    }

    /// Tells details, on stderr, when verbose.
    pub fn detail(&self, text: impl AsRef<str>) {
        if self.verbosity > 0 {
            let _ = writeln!(io::stderr().lock(), "{}", plain(text.as_ref()));
        }
    }

    /// Warns on stderr, also when quiet.
    pub fn warn(&self, text: impl AsRef<str>) {
        let label = self.paint_err(Style::Warning, "warning:");
        let _ = writeln!(io::stderr().lock(), "{label} {}", plain(text.as_ref()));
    }

    pub(crate) fn error_line(&self, label: &str, style: Style, text: &str) {
        let label = self.paint_err(style, label);
        let _ = writeln!(io::stderr().lock(), "{label} {}", plain(text));
    }
}

fn paint(colored: bool, style: Style, text: &str) -> String {
    if colored { format!("\x1b[{}m{text}\x1b[0m", style.code()) } else { text.to_owned() }
}

/// A number with its noun: `1 commit`, `2 commits`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Lines of aligned columns, two spaces apart; the last column is as wide as it is.
#[must_use]
pub fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |text: &str| text.chars().count();
    let mut widths = [0; N];
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (n, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if n + 1 < N {
                line.push_str(&" ".repeat(widths[n] - width(cell) + 2));
            }
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Text from a repository, a plan or an issue, made safe for a terminal.
///
/// Control characters, bidirectional controls and characters that can't be seen become visible
/// marks, so that no text can move the cursor, colour the screen or reorder what is read. Line
/// feeds and tabs stay.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\x1b' => out.push('␛'),
            c if is_hidden(c) => {
                use std::fmt::Write as _;
                let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180e}' => {
            true
        }
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// [`plain`] on one line: line feeds and tabs become visible too.
#[must_use]
pub fn plain_line(text: &str) -> String {
    plain(text).replace('\n', "␤").replace('\t', "␉")
}

/// JSON with the same values, in which characters that act on a terminal or can't be seen are
/// escaped.
#[must_use]
pub fn plain_json(text: &str) -> Cow<'_, str> {
    use std::fmt::Write as _;
    // They stand only in strings, and JSON escapes those below U+0020 itself.
    let is_escaped = |c: char| c >= '\u{7f}' && is_hidden(c);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A bar on stderr that appears after a second, where progress may be drawn.
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    is_shown: AtomicBool,
}

impl Progress {
    /// A bar over `all` things, such as "files", that stays away until a second after `begun`.
    #[must_use]
    pub fn new(out: &Output, doing: &str, all: u64, things: &str, begun: Instant) -> Self {
        let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::hidden());
        let words = format!("{doing} {{bar:30}} {{pos}} of {{len}} {things}");
        let style = ProgressStyle::with_template(&words);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, begun, is_shown: AtomicBool::new(!out.shows_progress()) }
    }

    /// So many of them are done.
    pub fn tell(&self, done: u64) {
        let is_late = self.begun.elapsed() > Duration::from_secs(1);
        if is_late && !self.is_shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(done);
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_made_visible() {
        assert_eq!(plain("a\x1b[31mb"), "a␛[31mb");
        assert_eq!(plain("a\u{202e}b\r\n"), "a⟨U+202E⟩b⟨U+000D⟩\n");
        assert_eq!(plain_line("a\nb"), "a␤b");
        assert!(matches!(plain("héllo\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_keeps_its_values_and_shows_no_hidden_character() {
        let value = serde_json::json!({"a\u{9b}": "\u{7f}\u{85}\u{202e}é\u{e0041}\n\u{1b}[1m😀"});
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let out = plain_json(&text);
        assert!(!out.chars().any(is_hidden), "{out}");
        assert!(out.contains("\\u202eé\\udb40\\udc41"), "{out}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&out).expect("JSON"), value);
    }
}
