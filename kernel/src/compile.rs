//! Finding the C compiler, and running it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, MissingName, Place, Result, harmless};
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

/// The kernel's dialect, and line tables and frame pointers so that a crash has a place in the tree.
const CODE: [&str; 12] = [
    "-std=gnu11",
    "-fms-extensions",
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

/// Writes a script that compiles the folder at `root` again, with another compiler if `CC` says so.
pub(crate) fn write_script(line: &[String], root: &Path) -> Result<()> {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    let arguments: Vec<String> = line[1..].iter().map(quoted).collect();
    let text = format!(
        "#!/bin/sh\ncd \"$(dirname \"$0\")\" && exec ${{CC:-{}}} {}\n",
        line[0],
        arguments.join(" ")
    );
    let path = root.join("compile.sh");
    let io = |source| Error::Io { what: path.display().to_string(), source };
    std::fs::write(&path, text).map_err(io)
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
    let message = errors_only(&harmless(&String::from_utf8_lossy(&out.stderr)));
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

/// How compilers say that they do not know a name, where that name is, and what would make it known.
const UNKNOWN: [(&str, Side, &str); 9] = [
    ("implicit declaration of function ", Side::After, FUNCTION),
    ("call to undeclared function ", Side::After, FUNCTION),
    ("undefined reference to ", Side::After, FUNCTION),
    ("unknown type name ", Side::After, TYPE),
    ("storage size of ", Side::After, TYPE),
    ("has incomplete type ", Side::After, TYPE),
    ("use of undeclared identifier ", Side::After, CONSTANT),
    (" undeclared", Side::Before, CONSTANT),
    ("no member named ", Side::After, MEMBER),
];

/// Which side of the words the name is on.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

const FUNCTION: &str =
    "the stand-ins in shim/ need this function or macro, with a meaning that is true in user space";
const TYPE: &str = "the stand-ins in shim/kernel.h need this type";
const CONSTANT: &str = "the stand-ins in shim/kernel.h need this constant, with the kernel's value";
const MEMBER: &str = "the stand-in of this structure in shim/objects.h needs this member";

fn missing_name(message: &str) -> Option<(String, &'static str)> {
    let (words, side, remedy) = UNKNOWN.iter().find(|(words, ..)| message.contains(words))?;
    let at = message.find(words)?;
    let name = match side {
        Side::Before => words_of(&message[..at]).next_back(),
        Side::After => words_of(&message[at + words.len()..]).next(),
    };
    Some((name?.to_owned(), *remedy))
}

fn words_of(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(move |c: char| !is_word(c))
        .filter(|word| !matches!(*word, "" | "struct" | "union" | "enum"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(message: &str) -> Vec<String> {
        let shown = |m: &MissingName| format!("{} {}", m.place, m.name);
        missing_names(message).iter().map(shown).collect()
    }

    #[test]
    fn gcc_names_what_is_missing() {
        let messages = "\
mm/readahead.c:74:7: error: implicit declaration of function 'f'; did you mean 'g'? [-Werror]
mm/readahead.c:75:7: error: 'C' undeclared (first use in this function)
mm/readahead.c:76:7: error: 'struct address_space' has no member named 'wb_err'
include/linux/fs.h:9:1: error: unknown type name 'new_t'
mm/readahead.c:80:7: error: storage size of 'x' isn't known
/usr/bin/ld: /tmp/x.o: in function `page_cache_sync_ra':
/usr/bin/ld: //mm/readahead.c:90: undefined reference to `elsewhere'
mm/readahead.c:91:7: error: implicit declaration of function 'f'
mm/readahead.c:92:7: error: expected ';' before '}' token
";
        assert_eq!(
            named(messages),
            [
                "mm/readahead.c:74 f",
                "mm/readahead.c:75 C",
                "mm/readahead.c:76 wb_err",
                "include/linux/fs.h:9 new_t",
                "mm/readahead.c:80 x",
                "mm/readahead.c:90 elsewhere"
            ]
        );
    }

    #[test]
    fn clang_names_what_is_missing() {
        let messages = "\
mm/readahead.c:74:7: error: call to undeclared function 'f'; ISO C99 and later do not support
mm/readahead.c:75:7: error: use of undeclared identifier 'C'
mm/readahead.c:76:7: error: no member named 'wb_err' in 'struct address_space'
mm/readahead.c:77:7: error: variable has incomplete type 'struct later'
";
        assert_eq!(
            named(messages),
            [
                "mm/readahead.c:74 f",
                "mm/readahead.c:75 C",
                "mm/readahead.c:76 wb_err",
                "mm/readahead.c:77 later"
            ]
        );
    }
}
