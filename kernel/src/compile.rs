//! Finding the C compiler, and running it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, MissingName, Place, Result};
use crate::folder::Folder;
use crate::session::Isolation;
use crate::tree::Tree;
use crate::worker;

/// A C compiler and how to call it.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    arguments: Vec<String>,
    /// What it says it is, part of the cache key.
    pub(crate) version: String,
}

/// Code generation: line tables and frame pointers so that a crash has a place in the tree.
const CODE: [&str; 11] = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-omit-frame-pointer",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-delete-null-pointer-checks",
    "-fno-common",
    "-pipe",
];
/// What must not be guessed at is an error; style is the tree's own affair.
const DIAGNOSTICS: [&str; 7] = [
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-Werror=return-type",
    "-Werror=undef",
    "-fdiagnostics-color=never",
];
/// Calls of the read path into readahead go through the shim, which writes them down.
const WRAPPED: [&str; 3] = ["page_cache_sync_ra", "page_cache_async_ra", "force_page_cache_ra"];

impl Compiler {
    /// `CC`, which may hold arguments, or the first of cc, gcc and clang that runs.
    pub(crate) fn find() -> Result<Self> {
        let set = std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty());
        let candidates = match &set {
            Some(cc) => vec![cc.as_str()],
            None => vec!["cc", "gcc", "clang"],
        };
        let found = candidates.iter().find_map(|cc| Self::try_one(cc));
        found.ok_or_else(|| Error::NoCompiler { tried: candidates.join(", ") })
    }

    fn try_one(command: &str) -> Option<Self> {
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next()?.into();
        let arguments: Vec<String> = words.collect();
        let out = Command::new(&program).args(&arguments).arg("--version").output().ok()?;
        let version =
            String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_owned();
        out.status.success().then_some(Self { program, arguments, version })
    }

    /// The command line that turns `folder`, written to the working directory `work`, into [`OBJECT`].
    pub(crate) fn command_line(&self, folder: &Folder, work: &Path) -> Vec<String> {
        let mut line = vec![self.program.display().to_string()];
        line.extend(self.arguments.iter().cloned());
        line.extend(CODE.iter().chain(&DIAGNOSTICS).map(|s| (*s).to_owned()));
        let no_caret = if self.version.contains("clang") {
            "caret-diagnostics"
        } else {
            "diagnostics-show-caret"
        };
        line.push(format!("-fno-{no_caret}"));
        line.extend(folder.features.iter().map(|feature| format!("-D{feature}")));
        line.push(format!("-fdebug-prefix-map={}=/", work.display()));
        line.extend(
            ["-Iinclude", "-shared", "-nostartfiles", "-Wl,-z,defs", "-Wl,-Bsymbolic"]
                .map(str::to_owned),
        );
        line.extend(WRAPPED.iter().map(|name| format!("-Wl,--wrap={name}")));
        line.extend(["-o", OBJECT].map(str::to_owned));
        line.extend(folder.units.iter().cloned());
        line
    }
}

/// Writes the folder's files below `root`.
pub(crate) fn write_folder(folder: &Folder, root: &Path) -> Result<()> {
    for (path, text) in &folder.files {
        let full = root.join(path);
        let io = |source| Error::Io { what: full.display().to_string(), source };
        if let Some(parent) = full.parent() {
            std::fs::create_dir_all(parent).map_err(io)?;
        }
        std::fs::write(&full, text).map_err(io)?;
    }
    Ok(())
}

/// The object's name within the folder.
pub(crate) const OBJECT: &str = "readahead.so";
/// The compiler's own temporary files stay within the folder.
const TEMPORARY: &str = "tmp";

/// Compiles the folder at `work`; what the kernel here could not restrict comes back as notes.
pub(crate) fn run(
    tree: &Tree,
    folder: &Folder,
    compiler: &Compiler,
    work: &Path,
    isolation: &Isolation,
) -> Result<Vec<String>> {
    let line = compiler.command_line(folder, work);
    let io = |source| Error::Io { what: line[0].clone(), source };
    std::fs::create_dir_all(work.join(TEMPORARY)).map_err(io)?;
    let mut command = match isolation {
        Isolation::InProcess => Command::new(&line[0]),
        Isolation::Worker(limits) => {
            let mut command = worker::command(limits, worker::COMPILE)?;
            command.arg(limits.memory_bytes.to_string()).arg(work).arg(&line[0]);
            command
        }
    };
    let out = command
        .args(&line[1..])
        .current_dir(work)
        .env("TMPDIR", work.join(TEMPORARY))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(io)?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect());
    }
    let message = errors_only(&String::from_utf8_lossy(&out.stderr));
    Err(Error::Compile { tree: tree.to_string(), missing: missing_names(&message), message })
}

/// The compiler's words without the warnings, each line once, and not without end.
fn errors_only(stderr: &str) -> String {
    const LINES: usize = 40;
    let mut seen: Vec<&str> = Vec::new();
    let chatter = [": warning: ", ": note: ", ": some warnings being treated as errors"];
    for line in stderr.lines().filter(|line| !chatter.iter().any(|c| line.contains(c))) {
        if !seen.contains(&line) {
            seen.push(line);
        }
    }
    let more = seen.len().saturating_sub(LINES);
    seen.truncate(LINES);
    let mut text = seen.join("\n");
    if more > 0 {
        _ = write!(text, "\nand {more} more lines");
    }
    text
}

/// The names the compiler or the linker did not know, from its messages.
fn missing_names(messages: &str) -> Vec<MissingName> {
    let mut missing: Vec<MissingName> = Vec::new();
    for line in messages.lines() {
        let Some((place, message)) = diagnostic(line) else { continue };
        let Some((name, remedy)) = missing_name(message) else { continue };
        if missing.iter().all(|m| m.name != name) {
            missing.push(MissingName { name, place, remedy: remedy.to_owned() });
        }
    }
    missing
}

/// `FILE:LINE:COLUMN: error: MESSAGE` of a compiler, `FILE:LINE: MESSAGE` of a linker.
fn diagnostic(line: &str) -> Option<(Place, &str)> {
    let (place, message) = line.split_once(": error: ").or_else(|| {
        let at = line.find(": undefined reference to ")?;
        Some((line[..at].rsplit(' ').next()?, &line[at + 2..]))
    })?;
    let mut parts = place.split(':');
    let (file, line) = (parts.next()?, parts.next()?);
    let file = file.trim_start_matches("./").trim_start_matches('/').to_owned();
    Some((Place { file, line: line.parse().ok()?, function: None }, message))
}

/// How compilers say that they do not know a name, and what would make it known.
const UNKNOWN: [(&str, &str); 8] = [
    ("implicit declaration of function ", FUNCTION),
    ("call to undeclared function ", FUNCTION),
    ("undefined reference to ", FUNCTION),
    ("unknown type name ", "the stand-ins in shim/kernel.h need this type"),
    ("storage size of ", "the stand-ins need the type of this variable"),
    (" undeclared", "the stand-ins in shim/kernel.h need this constant, with the kernel's value"),
    (
        "use of undeclared identifier ",
        "the stand-ins in shim/kernel.h need this constant, with the kernel's value",
    ),
    (" has no member named ", "the stand-in of this structure in shim/objects.h needs this member"),
];
const FUNCTION: &str =
    "the stand-ins in shim/ need this function or macro, with a meaning that is true in user space";

fn missing_name(message: &str) -> Option<(String, &'static str)> {
    let (phrase, remedy) = UNKNOWN.iter().find(|(phrase, _)| message.contains(phrase))?;
    let at = message.find(phrase)?;
    let member = phrase.starts_with(" has no");
    let quoted = if phrase.starts_with(' ') && !member {
        &message[..at]
    } else {
        &message[at + phrase.len()..]
    };
    let name = quoted.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    (!name.is_empty()).then(|| (name.to_owned(), *remedy))
}
