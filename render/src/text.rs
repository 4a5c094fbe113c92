//! Bytes of a repository as text that the page can turn back into the same bytes.
//!
//! Valid UTF-8 stands as it is. A byte that is part of no valid sequence becomes U+FDD0, a
//! character that never stands in real text, followed by the character of that number; a real
//! U+FDD0 is doubled. The script's `bytesOf` undoes it, and its drawing shows such bytes as
//! `⟨xE9⟩`.

/// The character that announces a raw byte.
pub(crate) const RAW: char = '\u{FDD0}';

/// Writes `bytes` in this form to the end of `out`.
pub(crate) fn push(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        if valid.contains(RAW) {
            for c in valid.chars() {
                if c == RAW {
                    out.push(RAW);
                }
                out.push(c);
            }
        } else {
            out.push_str(valid);
        }
        for byte in chunk.invalid() {
            out.push(RAW);
            out.push(char::from(*byte));
        }
    }
}

/// `bytes` in this form.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    push(&mut out, bytes);
    out
}

/// Splits bytes into lines without their LF; the last may lack one.
///
/// Yields each line and whether an LF follows it.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| match line.strip_suffix(b"\n") {
        Some(line) => (line, true),
        None => (line, false),
    })
}

/// Length in UTF-16 code units, which is how the script counts.
pub(crate) fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Writes one run: a length in base 36 with capital letters (1 is left out) and a class letter.
pub(crate) fn push_run(out: &mut String, length: usize, class: char) {
    if length != 1 {
        let mut digits = [0_u8; 13];
        let mut at = digits.len();
        let mut rest = length;
        loop {
            at -= 1;
            let digit = u8::try_from(rest % 36).unwrap_or(0);
            digits[at] = if digit < 10 { b'0' + digit } else { b'A' + digit - 10 };
            rest /= 36;
            if rest == 0 {
                break;
            }
        }
        out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
    }
    out.push(class);
}

/// Writes the classes of a line: a letter for each token, `.` for plain; those after the last
/// letter are plain.
///
/// A token is a run of ASCII letters, digits and underlines, or one other character that is no
/// blank or tab. Where a run ends within a token, the runs themselves follow a `!`. `runs`: length
/// in UTF-16 units and class.
pub(crate) fn push_classes(out: &mut String, line: &str, runs: &mut Vec<(usize, char)>) {
    while runs.last().is_some_and(|run| run.1 == '.') {
        runs.pop();
    }
    let begin = out.len();
    let mut ends = runs.iter().scan(0, |at, (length, class)| {
        *at += length;
        Some((*at, *class))
    });
    let mut run = ends.next();
    // Place in UTF-16 units.
    let mut at = 0;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let from = at;
        at += c.len_utf16();
        if c == ' ' || c == '\t' {
            continue;
        }
        while is_word(c) && rest.next_if(|next| is_word(*next)).is_some() {
            at += 1;
        }
        while run.is_some_and(|(end, _)| end <= from) {
            run = ends.next();
        }
        let Some((end, class)) = run else { break };
        if end < at {
            out.truncate(begin);
            out.push('!');
            for (length, class) in runs {
                push_run(out, *length, *class);
            }
            return;
        }
        out.push(class);
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `text` with every character that can't be seen, or that reorders others, written as its number.
///
/// For the few places where text stands in the page without the script, which marks such
/// characters itself.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c != ' ' && c.is_whitespace())
        || matches!(u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
            | 0xfdd0..=0xfdef | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_keep_their_value() {
        assert_eq!(encode(b"caf\xe9!"), "caf\u{FDD0}\u{E9}!");
        assert_eq!(encode("a\u{FDD0}b".as_bytes()), "a\u{FDD0}\u{FDD0}b");
        assert_eq!(encode("plain ü".as_bytes()), "plain ü");
    }

    #[test]
    fn lines_know_whether_they_end() {
        let all: Vec<_> = lines(b"a\r\n\nb").collect();
        assert_eq!(all, [(&b"a\r"[..], true), (b"", true), (b"b", false)]);
        assert_eq!(lines(b"").count(), 0);
    }

    #[test]
    fn classes_stand_for_tokens_unless_a_run_ends_within_one() {
        let classes = |line: &str, mut runs: Vec<(usize, char)>| {
            let mut out = String::new();
            push_classes(&mut out, line, &mut runs);
            out
        };
        assert_eq!(classes("let x_1 = f(2);", vec![(4, 'k'), (8, '.'), (1, 'n')]), "k....n");
        assert_eq!(classes("  \u{1f600}é s", vec![(5, 'c'), (2, '.')]), "cc");
        assert_eq!(classes(r#""a\nb""#, vec![(2, 's'), (2, 'n'), (2, 's')]), "!2s2n2s");
        assert_eq!(classes("plain", vec![(5, '.')]), "");
    }

    #[test]
    fn runs_are_base_36() {
        let mut out = String::new();
        for length in [1, 2, 35, 36, 1295, 1296] {
            push_run(&mut out, length, 'k');
        }
        assert_eq!(out, "k2kZk10kZZk100k");
    }
}
