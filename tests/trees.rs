//! Kernel trees as policies, end to end: our own small tree, and patches made from its text.

use std::path::Path;
use std::sync::LazyLock;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A tree of our own, with a readahead that is not Linux's.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernel/tests/tree");
const READAHEAD: &str = "mm/readahead.c";
const FILEMAP: &str = "mm/filemap.c";

const WORKLOAD: &str = "\
[file]
size = \"16M\"

[[stream]]
steps = [{ read = \"sequential\", size = \"64K\" }]

[[stream]]
steps = [{ read = \"sequential\", size = \"16K\" }]
";

/// What is built here is kept for all tests, and gone with them.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn rareplay(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rareplay").unwrap();
    command.env("NO_COLOR", "1").env("XDG_CACHE_HOME", CACHE.path()).args(args);
    command
}

fn json(args: &[&str]) -> Value {
    let output = rareplay(args).assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// Exit code and standard error of a run that fails.
fn failure(args: &[&str]) -> (i32, String) {
    let output = rareplay(args).assert().failure().get_output().clone();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A folder with a workload, and patches.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("two.workload.toml"), WORKLOAD).unwrap();
        Self(folder)
    }

    fn workload(&self) -> String {
        self.0.path().join("two.workload.toml").display().to_string()
    }

    /// The tree with a patch that puts `new` in the place of a part of a line that is there once.
    fn patched(&self, tree: &Path, file: &str, old: &str, new: &str) -> String {
        let text = std::fs::read_to_string(tree.join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let found: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains(old)).collect();
        let [at] = found[..] else { panic!("{old} is on {} lines", found.len()) };
        let (before, after) = (&lines[at - 3..at], &lines[at + 1..at + 4]);
        let context = |lines: &[&str]| lines.iter().map(|l| format!(" {l}\n")).collect::<String>();
        let (changed, first) = (lines[at].replace(old, new), at - 2);
        let diff = format!(
            "--- a/{file}\n+++ b/{file}\n@@ -{first},7 +{first},7 @@\n{}-{}\n+{changed}\n{}",
            context(before),
            lines[at],
            context(after)
        );
        let patch = self.0.path().join("a.patch");
        std::fs::write(&patch, diff).unwrap();
        format!("tree:{},patch={}", tree.display(), patch.display())
    }
}

fn own(folder: &Folder, file: &str, old: &str, new: &str) -> String {
    folder.patched(Path::new(TREE), file, old, new)
}

fn folios(report: &Value, policy: usize) -> u64 {
    report["results"][policy]["folios"]["total"].as_u64().unwrap()
}

#[test]
fn a_tree_is_a_policy_with_either_read_path() {
    let folder = Folder::new();
    let spec = format!("tree:{TREE}");
    for path in ["tree", "native"] {
        let args = ["--policy", &spec, "--read-path", path, "--format", "json"];
        let report = json(&[&["replay", &folder.workload()][..], &args].concat());
        let result = &report["results"][0];
        assert_eq!(result["policy"], spec);
        assert_eq!(result["pages"]["inserted"], 4096, "{path}");
        assert_eq!(result["device_reads"]["bytes"], 16 << 20, "{path}");
    }
}

#[test]
fn a_patch_of_the_read_path_shows_in_compare() {
    let folder = Folder::new();
    // Marks are met, but trigger nothing: every window is a synchronous one.
    let patched = own(&folder, FILEMAP, "if (folio_test_readahead(folio)) {", "if (0) {");
    let tree = format!("tree:{TREE}");
    let compare = |more: &[&str]| {
        let policies = ["--policy", &tree, "--policy", &patched, "--format", "json"];
        json(&[&["compare", &folder.workload()][..], &policies, more].concat())
    };
    let report = compare(&[]);
    let waits = |n: usize| report["results"][n]["read_wait_ns"]["p99"].as_u64().unwrap();
    assert!(waits(0) < waits(1), "{report}");
    let report = compare(&["--read-path", "native"]);
    assert_eq!(report["results"][0]["read_wait_ns"], report["results"][1]["read_wait_ns"]);
    assert_eq!(folios(&report, 0), folios(&report, 1));
}

#[test]
fn a_worker_and_this_process_replay_alike() {
    let folder = Folder::new();
    let spec = format!("tree:{TREE}");
    for memory in ["64M", "1M"] {
        let memory = format!("memory={memory}");
        let args = ["--policy", &spec, "--set", &memory, "--format", "json"];
        let workload = folder.workload();
        let args = [&["replay", &workload][..], &args].concat();
        let (worker, here) = (json(&args), json(&[&args[..], &["--in-process"]].concat()));
        assert_eq!(worker["results"], here["results"]);
    }
}

/// Code that no compiler makes for this machine switches stacks too.
#[test]
fn stacks_switched_by_the_c_library_replay_alike() {
    let folder = Folder::new();
    let (workload, spec) = (folder.workload(), format!("tree:{TREE}"));
    let args = ["replay", &workload, "--policy", &spec, "--format", "json"];
    let portable = rareplay(&args).env("CC", "cc -DKSHIM_UCONTEXT").assert().success();
    let portable: Value = serde_json::from_slice(&portable.get_output().stdout).unwrap();
    assert_eq!(portable["results"], json(&args)["results"]);
}

/// The 150th of small reads, most of which find their folio cached.
#[test]
fn an_error_names_the_access_in_the_middle_of_cached_ones() {
    let folder = Folder::new();
    let text = "[file]\nsize = \"1M\"\n[[stream]]\n\
        steps = [{ read = \"sequential\", size = \"1000\" }]\n";
    std::fs::write(folder.workload(), text).unwrap();
    let line = "iocb->ki_pos += n;";
    let spec = own(&folder, FILEMAP, line, &format!("BUG_ON(iocb->ki_pos == 150000); {line}"));
    let workload = folder.workload();
    let args = ["replay", &workload, "--policy", &spec];
    for args in [&args[..], &[&args[..], &["--in-process"]].concat()] {
        let (code, message) = failure(args);
        assert_eq!(code, 65, "{message}");
        let said = "access 150 BUG_ON(iocb->ki_pos == 150000) at mm/filemap.c:";
        assert!(message.contains(said), "{message}");
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=A", "-c", "user.email=a@b.c"]);
    let out = git.args(arguments).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The gate's exit code for the last commit of a checkout, which put `new` in the place of `old`.
fn gate_of_commit(old: &str, new: &str) -> i32 {
    let folder = Folder::new();
    let linux = folder.0.path().join("linux");
    let text = std::fs::read_to_string(Path::new(TREE).join(READAHEAD)).unwrap();
    assert!(text.contains(old));
    copy(Path::new(TREE), &linux);
    git(&linux, &["init", "-q"]);
    git(&linux, &["add", "."]);
    git(&linux, &["commit", "-qm", "base"]);
    std::fs::write(linux.join(READAHEAD), text.replacen(old, new, 1)).unwrap();
    git(&linux, &["commit", "-qam", "change"]);
    // What is not committed is not looked at.
    std::fs::write(linux.join(READAHEAD), "nothing").unwrap();
    let revision = |revision| format!("tree:{}@{revision}", linux.display());
    let (baseline, candidate) = (revision("HEAD~1"), revision("HEAD"));
    let args = ["gate", &folder.workload(), "--baseline", &baseline, "--candidate", &candidate];
    let output = rareplay(&args).output().unwrap();
    output.status.code().unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn the_gate_judges_a_commit_of_a_checkout() {
    let order = "#define WINDOW_ORDER 2";
    assert_eq!(gate_of_commit(order, "#define WINDOW_ORDER 0"), 10);
    assert_eq!(gate_of_commit(order, "#define WINDOW_ORDER (1 + 1)"), 0);
}

/// What `replay` says of our tree with `statement` in front of a line of its readahead or read path.
fn error_of(file: &str, line: &str, statement: &str) -> String {
    let folder = Folder::new();
    let spec = own(&folder, file, line, &format!("{statement} {line}"));
    let (code, message) = failure(&["replay", &folder.workload(), "--policy", &spec]);
    assert_eq!(code, 65, "{message}");
    message
}

/// Where each file is patched, and on which line that is.
const PLACES: [(&str, &str); 2] = [
    (READAHEAD, "folio_clear_readahead(folio);"),
    (FILEMAP, "page_cache_async_ra(&ractl, folio, end - folio->index);"),
];

/// A hostile statement, and what has to be said of it besides the access and the line.
fn ends_in(statement: &str, said: &str) {
    for (file, line) in PLACES {
        let text = std::fs::read_to_string(Path::new(TREE).join(file)).unwrap();
        let number = text.lines().position(|l| l.contains(line)).unwrap() + 1;
        let message = error_of(file, line, statement);
        for part in [said, "access 0 ", &format!("{file}:{number}")] {
            assert!(message.contains(part), "no {part} in: {message}");
        }
    }
}

#[test]
fn an_endless_loop_ends() {
    ends_in("for (;;) barrier();", "did not end within 5s");
}

#[test]
fn a_null_dereference_is_an_error() {
    ends_in("*(volatile int *)8 = 1;", "SIGSEGV at address 0x8");
}

#[test]
fn a_bug_on_is_an_error() {
    ends_in("BUG_ON(folio->order < 20);", "BUG_ON(folio->order < 20)");
}

#[cfg(target_arch = "x86_64")]
fn system_call(number: i64, arguments: &str) -> String {
    format!(
        "{{ long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"({number}L), {arguments} : \
         \"rcx\", \"r11\", \"memory\"); }}"
    )
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_file_is_not_written() {
    let target = CACHE.path().join("written-by-a-patch");
    // open(target, O_CREAT | O_WRONLY, 0644)
    let arguments = format!("\"D\"(\"{}\"), \"S\"(65L), \"d\"(420L)", target.display());
    ends_in(&system_call(2, &arguments), "made system call 2, which the worker forbids");
    assert!(!target.exists());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_socket_is_not_made() {
    let statement = system_call(41, "\"D\"(2L), \"S\"(1L), \"d\"(0L)");
    ends_in(&statement, "made system call 41, which the worker forbids");
}

#[test]
fn a_missing_compiler_is_named() {
    let folder = Folder::new();
    let args = ["replay", &folder.workload(), "--policy", &format!("tree:{TREE}")];
    let output = rareplay(&args).env("CC", "/nowhere/cc").assert().code(65).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("no C compiler: tried /nowhere/cc"), "{message}");
}

/// Kernels that state where a read leaves off, each in its words.
const PREV_POS: [&str; 2] = ["ra->prev_pos = last_pos;", "ra->prev_pos = iocb->ki_pos;"];

/// Runs when asked, as the tests of the kernel crate with real trees do.
#[test]
#[ignore = "needs kernel sources"]
fn a_patch_of_the_kernels_read_path_shows_in_compare() {
    let trees = std::env::var_os("RAREPLAY_KERNEL_TREES").expect("RAREPLAY_KERNEL_TREES");
    for tree in std::env::split_paths(&trees) {
        let folder = Folder::new();
        let text = std::fs::read_to_string(tree.join(FILEMAP)).unwrap();
        let old = PREV_POS.into_iter().find(|old| text.contains(old)).unwrap();
        // A file without a place it was read to last knows no sequence.
        let patched = folder.patched(&tree, FILEMAP, old, "ra->prev_pos = -1;");
        let whole = format!("tree:{}", tree.display());
        let workload = folder.0.path().join("pieces.workload.toml");
        let at = |offset| {
            format!(
                "{{ read = \"sequential\", size = \"16K\", offset = \"{offset}M\", count = 64 }}"
            )
        };
        let steps = [40, 8, 56, 20].map(at).join(", ");
        let text = format!("[file]\nsize = \"64M\"\n[[stream]]\nsteps = [{steps}]\n");
        std::fs::write(&workload, text).unwrap();
        let workload = workload.display().to_string();
        let compare = |more: &[&str]| {
            let policies = ["--policy", &whole, "--policy", &patched, "--format", "json"];
            json(&[&["compare", &workload][..], &policies, more].concat())
        };
        let report = compare(&[]);
        assert_ne!(folios(&report, 0), folios(&report, 1), "{}", tree.display());
        let report = compare(&["--read-path", "native"]);
        assert_eq!(folios(&report, 0), folios(&report, 1), "{}", tree.display());
    }
}

/// Streams of one file, and settings, under which built-in read paths have to take the same time.
const TIMED: [(&str, &[&str]); 5] = [
    ("sequential 64K, sequential 1M, sequential 64K, sequential 4K", &[]),
    ("sequential 1M, sequential 1000K", &["fs=btrfs"]),
    ("sequential 300K, random 64K, random 1000K", &["memory=8M"]),
    ("random 200K, sequential 64K", &["memory=4M", "read_ahead_kb=512"]),
    ("sequential 5M", &["max_sectors_kb=2048", "read_ahead_kb=64"]),
];

/// The kernel's own read path takes the time that the built-in one of its line takes.
#[test]
#[ignore = "needs kernel sources"]
fn the_kernels_read_path_takes_as_long_as_the_built_in_one() {
    let trees = std::env::var_os("RAREPLAY_KERNEL_TREES").expect("RAREPLAY_KERNEL_TREES");
    for tree in std::env::split_paths(&trees) {
        let makefile = std::fs::read_to_string(tree.join("Makefile")).unwrap();
        let number = |key: &str| {
            let line = makefile.lines().find(|line| line.starts_with(key)).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        let release = format!("{}.{}", number("VERSION ="), number("PATCHLEVEL ="));
        let native = replay::policy::for_kernel(&release).unwrap();
        let spec = format!("tree:{}", tree.display());
        for (streams, settings) in TIMED {
            let folder = Folder::new();
            let mut text = "[file]\nsize = \"32M\"\n".to_owned();
            for stream in streams.split(", ") {
                let (read, size) = stream.split_once(' ').unwrap();
                let count = if read == "random" { ", count = 200" } else { "" };
                text += "[[stream]]\n";
                text += &format!("steps = [{{ read = \"{read}\", size = \"{size}\"{count} }}]\n");
            }
            std::fs::write(folder.workload(), text).unwrap();
            let workload = folder.workload();
            let sets = settings.iter().flat_map(|setting| ["--set", setting]);
            let policies = ["--policy", native, "--policy", &spec, "--format", "json"];
            let args = ["replay", &workload].into_iter().chain(policies).chain(sets);
            let report = json(&args.collect::<Vec<_>>());
            let view = |n: usize| {
                let mut result = report["results"][n].as_object().unwrap().clone();
                // A tree's window that is decided again as it was does not show.
                for key in ["policy", "notes", "not_modelled", "cache_lock", "windows"] {
                    result.remove(key);
                }
                result
            };
            assert_eq!(view(0), view(1), "{release}: {streams} {settings:?}");
        }
    }
}
