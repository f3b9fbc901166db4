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
