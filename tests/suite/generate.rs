//! Completions and man pages.

use crate::support::TestEnv;

#[test]
fn completions_name_the_program_for_every_shell() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = env.run(["generate", "completions", shell]);
        assert_eq!(done.code, 0, "{done}");
        assert!(done.stdout.contains("codeboost"), "{done}");
    }
}

#[test]
fn there_is_a_man_page_for_every_command() {
    let env = TestEnv::new();
    let done = env.run(["generate", "man", "man"]);
    assert_eq!(done.code, 0, "{done}");
    let page = std::fs::read_to_string(env.path("man/codeboost-generate-man.1")).unwrap();
    assert!(page.contains("Write one man page per command into a folder"), "{page}");
}
