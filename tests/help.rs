//! What `--help` says, of every command.

mod common;

use common::rareplay;

const COMMANDS: [&[&str]; 17] = [
    &[],
    &["inspect"],
    &["verify"],
    &["replay"],
    &["merge"],
    &["compare"],
    &["explain"],
    &["report"],
    &["sweep"],
    &["gate"],
    &["convert"],
    &["calibrate"],
    &["record"],
    &["policy"],
    &["policy", "list"],
    &["policy", "show"],
    &["policy", "build"],
];

fn help(command: &[&str]) -> String {
    let mut run = rareplay(&[command, &["--help"]].concat());
    let output = run.env_remove("COLUMNS").assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// The commands that a help lists.
fn listed(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // A description that goes on in the next line is further to the right.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[test]
fn every_command_has_its_help() {
    for command in COMMANDS {
        let name = [&["rareplay"], command].concat().join("_");
        insta::assert_snapshot!(name, help(command));
    }
}

#[test]
fn no_command_is_left_out_above() {
    for group in [&[][..], &["policy"]] {
        let text = help(group);
        let names = listed(&text);
        assert!(!names.is_empty());
        for name in names {
            let command = [group, &[name]].concat();
            assert!(COMMANDS.contains(&&command[..]), "{command:?}");
        }
    }
}
