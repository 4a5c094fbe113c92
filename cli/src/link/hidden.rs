//! What a text hides from its reader: bidirectional controls, characters that can't be seen,
//! letters that look like others.

/// What was found in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Controls that reorder what is read.
    pub(crate) has_bidi: bool,
    /// Characters that can't be seen, controls and lone CRs among them.
    pub(crate) has_invisible: bool,
    /// An identifier that mixes Latin letters with letters of other scripts that look like Latin.
    pub(crate) has_confusable: bool,
}

/// Looks through a text. What is no UTF-8 is passed over.
pub(crate) fn look(text: &[u8]) -> Hidden {
    let mut found = Hidden { has_invisible: has_control(text), ..Hidden::default() };
    if text.is_ascii() {
        return found;
    }
    for chunk in text.utf8_chunks() {
        look_at_chars(chunk.valid(), &mut found);
    }
    found
}

/// Control characters other than tab, form feed and line ends.
fn has_control(text: &[u8]) -> bool {
    let is_suspect = |b: u8| b < b' ' && !matches!(b, b'\t' | b'\n' | 0x0c) || b == 0x7f;
    // Most texts have none, and a loop without branches finds that out quickly.
    if !text.iter().fold(false, |any, b| any | is_suspect(*b)) {
        return false;
    }
    text.iter().enumerate().any(|(at, b)| {
        is_suspect(*b) && !(*b == b'\r' && text.get(at + 1).is_none_or(|next| *next == b'\n'))
    })
}

fn look_at_chars(text: &str, found: &mut Hidden) {
    let mut before = '\0';
    let mut chars = text.chars().peekable();
    let mut word = Word::default();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            word.add(c);
        } else {
            found.has_confusable |= word.is_mixed();
            word = Word::default();
        }
        if !c.is_ascii() {
            found.has_bidi |= is_bidi(c);
            found.has_invisible |= is_invisible(before, c, chars.peek().copied());
        }
        before = c;
    }
    found.has_confusable |= word.is_mixed();
}

fn is_bidi(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

fn is_invisible(before: char, c: char, after: Option<char>) -> bool {
    match c {
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' => true,
        '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200c}' => true,
        // Emoji are joined and shaped with these.
        '\u{200d}' => !(is_emoji(before) && after.is_some_and(is_emoji)),
        '\u{fe0e}' | '\u{fe0f}' => !is_emoji(before) && !matches!(before, '0'..='9' | '#' | '*'),
        '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{20e3}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
            | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}'
    )
}

/// A run of letters, digits and underscores.
#[derive(Default)]
struct Word {
    has_latin: bool,
    has_look_alike: bool,
    has_disguise: bool,
}

impl Word {
    fn add(&mut self, c: char) {
        self.has_latin |= c.is_ascii_alphabetic();
        self.has_look_alike |= looks_latin(c);
        self.has_disguise |= is_disguised_latin(c);
    }

    fn is_mixed(&self) -> bool {
        self.has_disguise || self.has_latin && self.has_look_alike
    }
}

/// Letters of other scripts that are drawn as a Latin one.
fn looks_latin(c: char) -> bool {
    const GREEK: &str = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορτυχωϲϳ";
    const CYRILLIC: &str = "АВЕЅІЈКМНОРСТУХЬаеорсухѕіјһԁԛԝѡѵᴦгпьԍҮүѲ";
    const ARMENIAN: &str = "ՍՕԼհոսցքօզղ";
    const OTHER: &str = "ıȷɑɡɩɪʋᴄᴏᴠᴡᴢℓ";
    if c.is_ascii() {
        return false;
    }
    GREEK.contains(c)
        || CYRILLIC.contains(c)
        || ARMENIAN.contains(c)
        || OTHER.contains(c)
        // Cherokee capitals.
        || matches!(c, '\u{13a0}'..='\u{13f5}')
}

/// Latin letters in another dress, of which no word is written.
fn is_disguised_latin(c: char) -> bool {
    matches!(
        c,
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}' | '\u{212a}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = look(text.as_bytes());
        let names = [
            (found.has_bidi, "bidi"),
            (found.has_invisible, "invisible"),
            (found.has_confusable, "confusable"),
        ];
        let names: Vec<_> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        assert_eq!(names.join(" "), expected, "{text:?}");
    }

    #[test]
    fn what_can_not_be_seen_is_named() {
        check("plain text\twith\x0ctabs\r\n", "");
        check("admin\u{202e}nimda", "bidi");
        check("a\u{200b}b", "invisible");
        check("a\rb", "invisible");
        check("a\r", "");
        check("esc\x1b[31m", "invisible");
        check("nul\0", "invisible");
        check("a\u{2028}b", "invisible");
        check("\u{feff}text", "invisible");
        check("tag\u{e0041}", "invisible");
    }

    #[test]
    fn letters_that_pose_as_latin_are_named() {
        check("if \u{430}dmin {", "confusable");
        check("scοpe", "confusable");
        check("\u{ff41}bc", "confusable");
        check("Слово и дело", "");
        check("αβγ", "");
        check("naïve Grüße", "");
        check("日本語 text", "");
    }

    #[test]
    fn emoji_hide_nothing() {
        check("👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3} ©\u{fe0f}", "");
        check("x\u{fe0f}y", "invisible");
        check("x\u{200d}y", "invisible");
    }
}
