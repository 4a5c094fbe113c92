//! The line that names what a change lies in: a function, a type, a section.
//!
//! Git's own hunk headers depend on attributes of the repository under review, and its default
//! rule sees only lines that begin in the first column. These patterns are ours, chosen by the
//! extension of the file. Version 1; they are part of what an approval covers, so a change to them
//! is a new version and makes approvals stale.

use std::sync::OnceLock;

use codeboost_schema::bytes::RepoPath;
use regex::bytes::{Regex, RegexBuilder};

/// A context is cut to this many bytes.
const MAX_BYTES: usize = 80;

/// Extensions and their pattern. A pattern is matched at the start of a line.
const LANGUAGES: &[(&[&str], &str)] = &[
    (
        &["rs"],
        r"[ \t]*((pub(\([^)]*\))?|default|async|const|unsafe|safe|extern([ \t]+\x22[^\x22]*\x22)?)[ \t]+)*(fn|struct|enum|union|trait|impl|mod|type|macro_rules!|static|const)\b",
    ),
    (&["py", "pyi"], r"[ \t]*((async[ \t]+)?def|class)[ \t]"),
    (
        &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
        r"[ \t]*((export|default|declare|abstract|async|public|private|protected|static|override|readonly)[ \t]+)*((function|class|interface|enum|namespace|module|type)\b|(const|let|var)[ \t]+[A-Za-z_$][\w$]*[ \t]*=[ \t]*(async[ \t]*)?(function\b|\([^)]*\)[ \t]*(:[^=]*)?=>|[A-Za-z_$][\w$]*[ \t]*=>)|(get|set)?[ \t]*#?[A-Za-z_$][\w$]*[ \t]*(<[^>]*>)?\([^;]*\)[ \t]*(:[^;=]*)?\{[ \t]*\r?$)",
    ),
    (&["go"], r"[ \t]*(func|type)\b"),
    (
        &["java", "kt", "kts", "cs", "scala", "swift", "groovy"],
        r"[ \t]*((public|private|protected|internal|static|final|abstract|open|override|sealed|data|async|virtual|partial|suspend|inline|fileprivate|mutating|implicit|lazy|case|synchronized|native|default|@[A-Za-z][\w.]*(\([^)]*\))?)[ \t]+)*((class|interface|enum|record|object|struct|trait|protocol|extension|namespace|fun|func|def|init|actor)\b|[A-Za-z_][\w<>\[\], .?]*[ \t]+[A-Za-z_]\w*[ \t]*\([^;=]*$)",
    ),
    (
        &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "ino", "cu", "m", "mm"],
        r"([A-Za-z_][\w:~<>,*& \t]*[ \t*&:~]+[A-Za-z_~][\w:~]*[ \t]*\([^;]*$|[A-Za-z_][\w:~]*[ \t]*\([^;]*\)[ \t]*(const[ \t]*)?\{|[ \t]*((typedef|static|inline|extern|template[ \t]*<[^>]*>)[ \t]+)*(class|struct|enum|union|namespace)\b[^;]*$|[-+][ \t]*\()",
    ),
    (
        &["rb", "rake", "gemspec"],
        r"[ \t]*((private|protected|public)[ \t]+)?(def|class|module)[ \t]",
    ),
    (
        &["php"],
        r"[ \t]*((public|private|protected|static|final|abstract|readonly)[ \t]+)*(function|class|interface|trait|enum|namespace)\b",
    ),
    (
        &["sh", "bash", "zsh", "ksh"],
        r"[ \t]*(function[ \t]+[A-Za-z_][\w:.-]*|[A-Za-z_][\w:.-]*[ \t]*\(\))",
    ),
    (&["md", "markdown"], r" {0,3}#{1,6}[ \t]"),
    (&["toml", "ini", "cfg", "conf"], r"[ \t]*\["),
    (&["css", "scss", "less"], r"[^ \t{};/*][^;]*[{,][ \t]*\r?$"),
    (
        &["html", "htm", "xml", "svg", "vue"],
        r"[ \t]*<(h[1-6]|section|article|template|script|style|body|head|main|nav|form|table)\b",
    ),
    (&["lua"], r"[ \t]*(local[ \t]+)?function\b"),
    (&["pl", "pm"], r"[ \t]*(sub|package)[ \t]"),
    (&["sql"], r"(?i)[ \t]*(create|alter|drop)[ \t]"),
    (
        &["ex", "exs"],
        r"[ \t]*(def(p|module|macro|macrop|protocol|impl|struct)?|test|describe)[ \t]",
    ),
    (&["hs"], r"([a-z_][\w']*[ \t]*::|(data|newtype|type|class|instance|module)\b)"),
    (&["proto"], r"[ \t]*(message|service|enum|rpc|oneof)\b"),
    (&["tf", "hcl"], r"(resource|data|module|variable|output|provider|locals|terraform)\b"),
    (
        &["zig"],
        r"[ \t]*((pub|export|inline|extern)[ \t]+)*(fn|test)\b|[ \t]*(pub[ \t]+)?const[ \t]+\w+[ \t]*=[ \t]*(struct|enum|union)",
    ),
    (&["yml", "yaml"], r"[A-Za-z_$][^#]*:[ \t]*\r?$"),
];

/// Git's rule where it knows no better.
const DEFAULT: &str = r"[A-Za-z_$]";

/// By language, the default last. Compiled when a file asks for it.
static COMPILED: [OnceLock<Regex>; LANGUAGES.len() + 1] =
    [const { OnceLock::new() }; LANGUAGES.len() + 1];

fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(&format!("^(?:{pattern})"))
        .unicode(false)
        .build()
        .expect("a test compiles every pattern")
}

/// Finds contexts in one file.
pub(crate) struct Contexts {
    pattern: &'static Regex,
}

impl Contexts {
    /// `path`: of the old side, whose lines are searched.
    pub(crate) fn of(path: &RepoPath) -> Self {
        let name = path.as_bytes().rsplit(|b| *b == b'/').next().unwrap_or_default();
        let dot = name.iter().rposition(|b| *b == b'.').filter(|at| *at > 0);
        let extension = dot.map_or(&[][..], |at| &name[at + 1..]).to_ascii_lowercase();
        let known = LANGUAGES
            .iter()
            .position(|(names, _)| names.iter().any(|name| name.as_bytes() == extension));
        let language = known.unwrap_or(LANGUAGES.len());
        let pattern = known.map_or(DEFAULT, |known| LANGUAGES[known].1);
        Self { pattern: COMPILED[language].get_or_init(|| compile(pattern)) }
    }

    /// Whether a line names something. `line` has no terminator.
    pub(crate) fn names(&self, line: &[u8]) -> bool {
        // Nothing that matches begins later than this.
        let start = line.iter().position(|b| !matches!(b, b' ' | b'\t'));
        start.is_some() && self.pattern.is_match(&line[..line.len().min(1000)])
    }
}

/// The line as it is shown and covered: cut to 80 bytes, at a character where it is UTF-8.
pub(crate) fn cut(line: &[u8]) -> &[u8] {
    if line.len() <= MAX_BYTES {
        return line;
    }
    let Ok(text) = std::str::from_utf8(line) else { return &line[..MAX_BYTES] };
    &line[..text.floor_char_boundary(MAX_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (extensions, _) in LANGUAGES {
            Contexts::of(&format!("a.{}", extensions[0]).as_str().into());
        }
    }

    #[test]
    fn each_language_finds_what_a_change_lies_in() {
        for (path, named, plain) in [
            ("a.rs", "    pub(crate) async fn retry(&self) {", "    self.retry();"),
            ("a.rs", "impl<T> Drop for Guard<T> {", "    }"),
            ("a.rs", "unsafe extern \"C\" fn f() {", "        let fnord = 1;"),
            ("a.py", "    async def go(self):", "    define = 1"),
            ("a.ts", "export default class A {", "  return classes;"),
            ("a.ts", "  private run(a: string): void {", "  run(a);"),
            ("a.js", "const f = async (a) => {", "const f = 1;"),
            ("a.go", "func (s *S) Run() {", "\tfunction()"),
            ("A.java", "    public static void main(String[] args) {", "    go();"),
            ("a.c", "static int main(int argc,", "  return 1;"),
            ("a.cpp", "void A::b() const {", "    call(a);"),
            ("a.rb", "  def run", "  run"),
            ("a.php", "    public function run() {", "    $this->run();"),
            ("a.sh", "main() {", "  main"),
            ("a.md", "## Title", "#hash"),
            ("a.toml", "[dependencies]", "serde = 1"),
            ("a.css", ".a > b {", "  color: red;"),
            ("a.sql", "create table a (", "  id int"),
            ("a.unknown", "Anything", "  indented"),
            ("Makefile", "all: build", "\tcargo build"),
            (".rs", "word", " fn x"),
        ] {
            let contexts = Contexts::of(&path.into());
            assert!(contexts.names(named.as_bytes()), "{path}: {named}");
            assert!(!contexts.names(plain.as_bytes()), "{path}: {plain}");
        }
    }

    #[test]
    fn a_context_is_cut_at_a_character_where_there_are_characters() {
        let long = "ä".repeat(60);
        assert_eq!(cut(long.as_bytes()).len(), 80);
        let long = format!("x{long}");
        assert_eq!(cut(long.as_bytes()).len(), 79);
        assert_eq!(cut(&[0xff; 100]).len(), 80);
    }
}
