//! The help of every command, so that a change of it is seen and read.

use clap::CommandFactory as _;

use crate::support::TestEnv;

fn walk(command: &clap::Command, path: &[String], found: &mut Vec<Vec<String>>) {
    found.push(path.to_vec());
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let path = [path, &[sub.get_name().to_owned()]].concat();
        walk(sub, &path, found);
    }
}

#[test]
fn the_help_of_every_command_is_as_it_was_read() {
    let env = TestEnv::new();
    let mut paths = Vec::new();
    walk(&codeboost::args::Args::command(), &[], &mut paths);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let root = env.run(["--help"]).stdout;
    let everywhere = words(root.split("Everywhere:").nth(1).unwrap());
    for path in paths {
        let done = env.run(path.iter().map(String::as_str).chain(["--help"]));
        assert_eq!(done.code, 0, "{path:?}: {done}");
        let (own, shared) = done.stdout.split_once("Everywhere:").unwrap();
        assert_eq!(words(shared), everywhere, "{path:?}");
        let name = std::iter::once("help").chain(path.iter().map(String::as_str));
        let name = name.collect::<Vec<_>>().join("_");
        let text = if path.is_empty() { &done.stdout } else { own };
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(name, lines.join("\n").trim_end());
    }
}

#[test]
fn every_command_that_does_something_has_an_example() {
    let mut paths = Vec::new();
    let root = codeboost::args::Args::command();
    walk(&root, &[], &mut paths);
    for path in paths {
        let command = path.iter().fold(&root, |command, name| {
            command.find_subcommand(name).expect("a path that was walked")
        });
        if command.get_subcommands().next().is_none() {
            let help = command.get_long_about().or(command.get_about());
            let help = help.map(ToString::to_string).unwrap_or_default();
            let after = command.get_after_help().or(command.get_after_long_help());
            let after = after.map(ToString::to_string).unwrap_or_default();
            assert!(
                help.contains("Example: codeboost") || after.contains("codeboost "),
                "the help of {} has no example",
                path.join(" ")
            );
        }
    }
}
