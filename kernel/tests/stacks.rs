//! Stacks of tasks are switched by code of each kind of processor. All of it is run here: what other
//! processors have in an emulator, where there is one and a compiler for them.
//!
//! On Debian: `gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static`.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{fixture, options};
use kernel::{Built, Options, Tree};
use tempfile::TempDir;

const AARCH64: (&str, &[&str]) =
    ("aarch64-linux-gnu-gcc", &["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]);

/// Our tree as a folder to compile.
fn folder() -> (TempDir, Built) {
    let cache = tempfile::tempdir().unwrap();
    let options = Options { cache: Some(cache.path().to_owned()), keep: true, ..options() };
    let tree = Tree::parse(&fixture().display().to_string()).unwrap();
    (cache, Built::new(&tree, &options).unwrap())
}

fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

fn succeed(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {} {said}", out.status);
    out
}

/// What `stacks/main.c` prints with the object that `compiler` makes, which `runner` runs.
fn said(folder: &Path, compiler: &str, runner: &[&str]) -> String {
    succeed(Command::new("sh").arg(folder.join("compile.sh")).env("CC", compiler));
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (main, program) = (manifest.join("tests/stacks/main.c"), folder.join("main"));
    let mut words = compiler.split_whitespace();
    let mut compile = Command::new(words.next().unwrap());
    compile.args(words).args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-I"]).arg(manifest);
    compile.arg(main).arg(folder.join("readahead.so")).arg("-o").arg(&program);
    succeed(&mut compile);
    let mut run = match runner {
        [] => Command::new(&program),
        [emulator, arguments @ ..] => {
            let mut run = Command::new(emulator);
            run.args(arguments).arg(&program);
            run
        }
    };
    String::from_utf8(succeed(&mut run).stdout).unwrap()
}

#[test]
fn tasks_run_alike_however_stacks_are_switched() {
    let (_cache, built) = folder();
    let folder = built.folder().unwrap();
    let usual = said(folder, "cc", &[]);
    insta::assert_snapshot!(usual);
    assert_eq!(said(folder, "cc -DKSHIM_UCONTEXT", &[]), usual);
    let (compiler, emulator) = AARCH64;
    if is_here(compiler) && is_here(emulator[0]) {
        assert_eq!(said(folder, compiler, emulator), usual);
        let portable = format!("{compiler} -DKSHIM_UCONTEXT");
        assert_eq!(said(folder, &portable, emulator), usual);
    } else {
        println!("aarch64 skipped: no {compiler} or no {}", emulator[0]);
    }
}
