//! The pairing rule on worked blocks that a person can read: `tests/histories/blocks/`.

use std::path::Path;

use crate::link::{Repo, lines_with_owners};
use crate::support::TestEnv;

/// Sections of a fixture: name and text.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("--- ").or(line.strip_prefix("=== ")) {
            sections.push((name.to_owned(), String::new()));
        } else if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    sections
}

#[test]
fn every_worked_block_comes_out_as_it_is_worked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories/blocks");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10);
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{name} says what it shows");
        let sections = sections(&text);
        let env = TestEnv::new();
        let content = |text: &str| text.replace('␍', "\r");
        let mut repo = Repo::new(&env, &[("file.txt", &content(&sections[0].1))]);
        let mut expected = "";
        for (who, text) in &sections[1..] {
            match who.as_str() {
                "expected" => expected = text,
                "nobody" => {
                    repo.commit(None, &[("file.txt", &content(text))]);
                }
                item => {
                    repo.commit(Some(item), &[("file.txt", &content(text))]);
                }
            }
        }
        let files: &[&str] = &["file.txt"];
        let link = repo.link(&[("P1", files), ("P2", files), ("P3", files)]);
        let found = lines_with_owners(&link).replace('\r', "␍");
        assert_eq!(found, expected, "{name}:\n{found}");
    }
}
