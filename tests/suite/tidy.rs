//! What holds for the source itself: the direction of dependencies, one door per package.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn sources(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut todo = vec![root.join(folder)];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// The layers of `cli`, lowest first, and whether modules of one layer may use each other.
const LAYERS: &[(&str, &[&str], bool)] = &[
    (
        "shared",
        &["exit_code", "output", "error", "context", "process", "stage", "config", "embedded"],
        true,
    ),
    (
        "rules",
        &["ledger", "plan", "link", "approval", "gate", "task", "queue", "findings", "github"],
        true,
    ),
    ("edges", &["git", "store", "forge", "sandbox", "agent"], true),
    ("review", &["review"], false),
    (
        "stages",
        &[
            "draft",
            "execute",
            "candidate",
            "bundle",
            "apply",
            "merge",
            "ask",
            "reject",
            "issues",
            "lessons",
        ],
        false,
    ),
    ("commands", &["args", "commands", "run"], true),
];

fn layer(module: &str) -> (usize, bool) {
    let found = LAYERS.iter().position(|(_, modules, _)| modules.contains(&module));
    let Some(n) = found else {
        panic!("module {module} belongs to no layer; add it to LAYERS");
    };
    (n, LAYERS[n].2)
}

#[test]
fn dependencies_point_one_way() {
    let mut faults = Vec::new();
    for (name, text) in sources("cli/src") {
        let path = name.strip_prefix("cli/src/").unwrap();
        let module = path.split(['/', '.']).next().unwrap();
        // `error` alone may know every room: it turns their errors into what people see.
        if matches!(module, "lib" | "main" | "error") {
            continue;
        }
        let (from, among) = layer(module);
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            for part in code.split("crate::").skip(1) {
                let used: String =
                    part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if used.is_empty() || used == module {
                    continue;
                }
                let (to, _) = layer(&used);
                if to > from || (to == from && !among) {
                    faults.push(format!("{name}:{}: {module} uses {used}", n + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn schema_and_render_know_nothing_of_what_uses_them() {
    for (folder, forbidden) in
        [("schema/src", &["codeboost_render", "codeboost::"][..]), ("render/src", &["codeboost::"])]
    {
        for (name, text) in sources(folder) {
            for word in forbidden {
                assert!(!text.contains(word), "{name} uses {word}");
            }
        }
    }
}

#[test]
fn each_package_has_one_door() {
    let doors: &[(&str, &[&str])] = &[
        ("gix::", &["cli/src/git/"]),
        ("gix_ignore::", &["cli/src/git/"]),
        (
            "rustix::",
            &[
                "cli/src/agent/asked.rs",
                "cli/src/stage.rs",
                "cli/src/execute/",
                "cli/src/process.rs",
                "cli/src/sandbox/",
                "cli/src/store/",
            ],
        ),
        ("rusqlite::", &["cli/src/store/"]),
        ("bollard::", &["cli/src/sandbox/"]),
        ("hyper::", &["cli/src/sandbox/"]),
        ("tokio::", &["cli/src/sandbox/"]),
        ("tokio_rustls::", &["cli/src/sandbox/"]),
        ("jsonschema::", &["schema/src/"]),
        ("comrak::", &["render/src/"]),
        ("minijinja::", &["render/src/", "cli/src/agent/prompt.rs"]),
        (
            "clap::",
            &["cli/src/args.rs", "cli/src/commands/", "cli/src/lib.rs", "cli/src/output.rs"],
        ),
        ("Command::new", &["cli/src/process.rs"]),
    ];
    for folder in ["cli/src", "render/src", "schema/src"] {
        for (name, text) in sources(folder) {
            for (word, allowed) in doors {
                let used = text.lines().any(|line| line.split("//").next().unwrap().contains(word));
                let inside = allowed.iter().any(|door| name.starts_with(door));
                assert!(!used || inside, "{name} uses {word}, which belongs in {allowed:?}");
            }
        }
    }
}

#[test]
fn every_test_file_is_listed_in_main() {
    let folder = root().join("tests/suite");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let is_module =
            path.extension().is_some_and(|ext| ext == "rs") || path.join("mod.rs").exists();
        if is_module && stem != "main" {
            assert!(main.contains(&format!("mod {stem};")), "tests/suite/main.rs lacks mod {stem}");
        }
    }
}
