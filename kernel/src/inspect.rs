//! What a built object must not contain, and where its addresses are in the tree.

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

use crate::error::{Error, Place, Result};

/// What the shim itself needs from the C library.
const IMPORTS: [&str; 23] = [
    "__errno_location",
    "__stack_chk_fail",
    "__tls_get_addr",
    "_exit",
    "_setjmp",
    "abort",
    "calloc",
    "free",
    "getcontext",
    "longjmp",
    "makecontext",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "mmap",
    "mprotect",
    "munmap",
    "realloc",
    "sigaction",
    "sigaltstack",
    "swapcontext",
];
/// The shim's own variables: the instance of the running call (per thread), the note for signals,
/// stacks for tasks.
const VARIABLES: [&str; 3] = ["kshim_running", "kshim_record", "kshim_stacks"];

/// What an object holds that it must not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Symbols from outside that kernel code cannot have.
    pub(crate) foreign: Vec<String>,
    /// Variables that replays would share.
    pub(crate) variables: Vec<String>,
    /// Code that would run as soon as the object is loaded.
    pub(crate) constructors: bool,
}

pub(crate) fn findings(path: &Path) -> Result<Findings> {
    let bytes = std::fs::read(path)
        .map_err(|source| Error::Io { what: path.display().to_string(), source })?;
    let load = |e: object::Error| Error::Load { path: path.to_owned(), message: e.to_string() };
    let file = object::File::parse(&*bytes).map_err(load)?;
    let mut found = Findings::default();
    for symbol in file.dynamic_symbols().filter(object::ObjectSymbol::is_undefined) {
        let name = symbol.name().map_err(load)?.split('@').next().unwrap_or_default();
        if !name.is_empty() && !IMPORTS.contains(&name) && !symbol.is_weak() {
            found.foreign.push(name.to_owned());
        }
    }
    for symbol in file.symbols() {
        let Some(section) = symbol.section_index().and_then(|i| file.section_by_index(i).ok())
        else {
            continue;
        };
        let name = symbol.name().map_err(load)?;
        if is_variable(&symbol) && is_writable(&section) && !VARIABLES.contains(&name) {
            found.variables.push(name.to_owned());
        }
    }
    found.foreign.sort();
    found.variables.sort();
    let starts = |s: &object::Section| {
        matches!(s.name(), Ok(".init_array" | ".ctors" | ".preinit_array" | ".init"))
    };
    found.constructors = file.sections().any(|s| starts(&s));
    Ok(found)
}

fn is_variable(symbol: &object::Symbol) -> bool {
    matches!(symbol.kind(), SymbolKind::Data | SymbolKind::Tls) && symbol.size() > 0
}

/// Constants that hold addresses are written by the loader only.
fn is_writable(section: &object::Section) -> bool {
    let kind = section.kind();
    let writable = matches!(
        kind,
        SectionKind::Data
            | SectionKind::UninitializedData
            | SectionKind::Tls
            | SectionKind::UninitializedTls
    );
    writable && !section.name().is_ok_and(|name| name.starts_with(".data.rel.ro"))
}

/// The innermost of `addresses`, offsets within the object, that is in the tree's own text.
pub(crate) fn place(path: &Path, addresses: &[u64]) -> Option<Place> {
    let loader = addr2line::Loader::new(path).ok()?;
    addresses.iter().find_map(|address| place_of(&loader, *address))
}

fn place_of(loader: &addr2line::Loader, address: u64) -> Option<Place> {
    let mut frames = loader.find_frames(address).ok()?;
    while let Ok(Some(frame)) = frames.next() {
        let function =
            frame.function.and_then(|f| f.raw_name().ok().map(std::borrow::Cow::into_owned));
        let Some(location) = frame.location else { continue };
        let (Some(file), Some(line)) = (location.file, location.line) else { continue };
        let file = tree_path(file);
        if !file.contains("shim/") {
            return Some(Place { file: file.to_owned(), line, function });
        }
    }
    None
}

/// Paths are relative to the folder, which the compiler was told to call `/`.
fn tree_path(file: &str) -> &str {
    file.trim_start_matches("/./").trim_start_matches("./").trim_start_matches('/')
}
