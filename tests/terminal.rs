//! What the program writes on a terminal: colours, and lines as wide as it is.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/corpus");

/// Both ends of a terminal of so many columns.
fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size).unwrap();
    (ours, theirs)
}

/// What a command writes on a terminal.
fn on_terminal(columns: u16, args: &[&str], environment: &[(&str, &str)]) -> String {
    let (ours, theirs) = terminal(columns);
    let mut command = Command::cargo_bin("rareplay").unwrap();
    // Much of the environment has a say in colours: CI, for one.
    command.current_dir(CORPUS).env_clear().env("TERM", "xterm");
    command.args(args).stdout(Stdio::from(theirs));
    let mut child = command.envs(environment.iter().copied()).spawn().unwrap();
    // The command's end is closed with it, so that reading comes to an end.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Linux says EIO where the other end is closed.
        let _ = File::from(ours).read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
    });
    assert!(child.wait().unwrap().success());
    reader.join().unwrap()
}

const INSPECT: [&str; 2] = ["inspect", "linux-6.18/willneed4.ftrace.zst"];

fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('\u{1b}').enumerate() {
        let from = if at == 0 { 0 } else { part.find('m').map_or(0, |end| end + 1) };
        plain += &part[from..];
    }
    plain
}

#[test]
fn lines_are_as_wide_as_the_terminal() {
    for columns in [60, 90, 200] {
        let text = without_colours(&on_terminal(columns, &INSPECT, &[]));
        // Tables follow, which keep their width.
        let paragraphs = text.lines().take_while(|line| !line.is_empty());
        let widest = paragraphs.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns} columns:\n{text}");
    }
    let narrow = on_terminal(60, &INSPECT, &[]);
    let wide = on_terminal(200, &INSPECT, &[]);
    assert!(narrow.lines().count() > wide.lines().count());
}

#[test]
fn colours_are_for_terminals_and_those_who_want_them() {
    let coloured = |environment: &[(&str, &str)], more: &[&str]| {
        on_terminal(80, &[&INSPECT[..], more].concat(), environment).contains('\u{1b}')
    };
    assert!(coloured(&[], &[]));
    assert!(!coloured(&[("NO_COLOR", "1")], &[]));
    assert!(!coloured(&[("CLICOLOR", "0")], &[]));
    assert!(!coloured(&[("TERM", "dumb")], &[]));
    assert!(!coloured(&[], &["--color", "never"]));
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]));
    let piped = Command::cargo_bin("rareplay").unwrap().current_dir(CORPUS).args(INSPECT).output();
    assert!(!piped.unwrap().stdout.contains(&0x1b));
}
