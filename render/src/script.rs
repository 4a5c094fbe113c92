//! What stands inside script and style elements.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use sha2::Digest as _;

/// One more costs a third more time for a two-hundredth of the size.
const LEVEL: Compression = Compression::new(7);

/// JSON that can stand in a script element: nothing in it can end the element or begin a comment.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("plain data serializes");
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            // Parsers of HTML may alter these; JSON takes them escaped just as well.
            '\u{7f}'..='\u{9f}'
            | '\u{feff}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// `bytes`, deflated without header, as base64.
pub(crate) fn pack(bytes: &[u8]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 3), LEVEL);
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map(|bytes| STANDARD.encode(bytes))
        .expect("a vector takes every byte")
}

/// The source of a policy that allows exactly this inline text.
pub(crate) fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(sha2::Sha256::digest(text.as_bytes())))
}

/// Joins modules into one classic script.
///
/// The modules share one scope, so their top-level names must differ; imports fall away and
/// `export` is dropped.
pub(crate) fn join(modules: &[(&str, &str)]) -> String {
    let mut out = String::from("(()=>{'use strict';\n");
    for (_, text) in modules {
        out.push_str(&shorten(text));
    }
    out.push_str("})();\n");
    out
}

/// Leaves out imports, `export`, comments on lines of their own, comments that name a type, and
/// indentation.
pub(crate) fn shorten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_import = false;
    let mut in_comment = false;
    for line in text.lines() {
        let line = line.trim();
        if in_import {
            in_import = !line.ends_with(';');
            continue;
        }
        if in_comment {
            in_comment = !line.ends_with("*/");
            continue;
        }
        if line.is_empty() || line.starts_with("// ") {
            continue;
        }
        if line.starts_with("/*") {
            if line.ends_with("*/") {
                continue;
            }
            if !line.contains("*/") {
                in_comment = true;
                continue;
            }
        }
        if line.starts_with("import ") {
            in_import = !line.ends_with(';');
            continue;
        }
        without_casts(line.strip_prefix("export ").unwrap_or(line), &mut out);
        out.push('\n');
    }
    out
}

/// Leaves out the comments of a line that tell types: `/** … */`.
fn without_casts(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("/** ") {
        let Some((_, after)) = after.split_once("*/") else { break };
        out.push_str(before);
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    out.push_str(rest);
}

/// Leaves out comments on lines of their own and indentation.
pub(crate) fn shorten_style(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_comment = false;
    for line in text.lines() {
        let line = line.trim();
        if in_comment || line.starts_with("/*") {
            in_comment = !line.ends_with("*/");
        } else if !line.is_empty() {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_leave_its_element() {
        let text = json(&"</script><!--<script>&\u{2028}\u{feff}\u{fdd0}\0");
        assert_eq!(
            text,
            r#""\u003c/script\u003e\u003c!--\u003cscript\u003e\u0026\u2028\ufeff\ufdd0\u0000""#
        );
    }

    #[test]
    fn modules_become_one_scope() {
        let modules = [
            ("a.js", "/**\n * Doc.\n */\nexport const a = /** @type {any} */ (1); // kept\n"),
            (
                "b.js",
                "import {\n  a,\n} from './a.js';\n// gone\nexport function b() {\n  return a;\n}\n",
            ),
        ];
        insta::assert_snapshot!(join(&modules), @r"
        (()=>{'use strict';
        const a = (1); // kept
        function b() {
        return a;
        }
        })();
        ");
    }
}
