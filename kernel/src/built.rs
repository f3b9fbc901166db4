//! Building a tree, once: the object stays in a cache, keyed by all that went into it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::compile::{self, Compiler};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::inspect;
use crate::items::{ItemKind, SourceFile};
use crate::patch::Patch;
use crate::session::Isolation;
use crate::tree::Tree;

/// What the stand-ins call a kernel without transparent huge pages.
const WITHOUT_THP: &str = "KSHIM_WITHOUT_THP";

/// How to build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A patch to apply, in memory, to what is read.
    pub patch: Option<PathBuf>,
    /// Build as a kernel without `CONFIG_TRANSPARENT_HUGEPAGE`, which has no large folios.
    pub without_thp: bool,
    /// Leave the folder that was compiled beside the object; see [`Built::folder`].
    pub keep: bool,
    /// Where objects are kept; by default `$XDG_CACHE_HOME/rareplay/kernel`.
    pub cache: Option<PathBuf>,
    /// Where the compiler runs. The text of a tree is other people's, and so is what it makes the
    /// compiler do.
    pub isolation: Isolation,
}

/// A tree whose readahead is ready to be replayed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Built {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tree: String,
    id: String,
    object: PathBuf,
    folder: Option<PathBuf>,
    version: Option<String>,
    compiler: String,
    cut: BTreeMap<String, Vec<String>>,
    replaced: Vec<String>,
    notes: Vec<String>,
    from_cache: bool,
}

impl Built {
    /// Reads, cuts and, unless it has been before, compiles.
    pub fn new(tree: &Tree, options: &Options) -> Result<Self> {
        let patch = options.patch.as_deref().map(Patch::read).transpose()?;
        let cache = cache_home(options)?;
        let mut folder = Folder::new(tree, patch.as_ref(), &cache)?;
        folder.features.extend(options.without_thp.then(|| WITHOUT_THP.to_owned()));
        let compiler = Compiler::find()?;
        let id = cache_key(&folder, &compiler);
        let home = cache.join(&id);
        let object = home.join("readahead.so");
        let from_cache = object.is_file();
        let mut notes = folder.notes.clone();
        if !from_cache {
            notes.extend(build(tree, &folder, &compiler, &home, &options.isolation)?);
        }
        let kept = options.keep.then(|| home.join("folder"));
        if let Some(kept) = &kept {
            compile::write_folder(&folder, kept)?;
            compile::write_script(&compiler.command_line(&folder, kept), kept)?;
        }
        let Folder { version, cut, replaced, .. } = folder;
        let tree = match &options.patch {
            Some(patch) => format!("{tree} with {}", patch.display()),
            None => tree.to_string(),
        };
        let compiler = compiler.version;
        Ok(Self {
            inner: Arc::new(Inner {
                tree,
                id,
                object,
                folder: kept,
                version,
                compiler,
                cut,
                replaced,
                notes,
                from_cache,
            }),
        })
    }

    /// Identifies everything that went in: the same id is the same behaviour.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The tree as it was asked for, and the patch.
    pub fn describe(&self) -> &str {
        &self.inner.tree
    }

    /// What the tree's Makefile calls itself, `6.12.57`; the code may be newer or older.
    pub fn version_guess(&self) -> Option<&str> {
        self.inner.version.as_deref()
    }

    /// The compiler that made it.
    pub fn compiler(&self) -> &str {
        &self.inner.compiler
    }

    /// The names taken from the tree besides `mm/readahead.c`, by file.
    pub fn cut(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.inner.cut.iter().map(|(file, names)| (file.as_str(), names.as_slice()))
    }

    /// The names that the files read define too, but that are the replay's own stand-ins: locks,
    /// allocation, the page cache's insertion and removal, structures with a hundred members.
    pub fn replaced(&self) -> &[String] {
        &self.inner.replaced
    }

    /// What the user should know: fuzz and offsets of the patch, changes that stand-ins hide, what
    /// the kernel here could not restrict.
    pub fn notes(&self) -> &[String] {
        &self.inner.notes
    }

    /// Whether it had been built before.
    pub fn is_from_cache(&self) -> bool {
        self.inner.from_cache
    }

    /// The folder that was compiled, if it was to be kept, with a script `compile.sh` that does it
    /// again.
    pub fn folder(&self) -> Option<&Path> {
        self.inner.folder.as_deref()
    }

    pub(crate) fn object(&self) -> &Path {
        &self.inner.object
    }

    /// What user space cannot model, for the result of every replay.
    pub fn not_modelled() -> &'static [&'static str] {
        &[
            "allocation failure, memory cgroups and pressure stalls",
            "cgroup I/O congestion",
            "writes, writeback and dirty folios",
            "refaults (workingset) and shadow entries",
            "fault-around of several processes that map one file",
        ]
    }
}

fn cache_home(options: &Options) -> Result<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = match &options.cache {
        Some(path) => path.clone(),
        None => absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .unwrap_or_else(std::env::temp_dir)
            .join("rareplay/kernel"),
    };
    std::fs::create_dir_all(&home)
        .map_err(|source| Error::Io { what: home.display().to_string(), source })?;
    home.canonicalize().map_err(|source| Error::Io { what: home.display().to_string(), source })
}

/// The stand-ins are among the folder's files, so their version is in the key too.
fn cache_key(folder: &Folder, compiler: &Compiler) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for (path, text) in &folder.files {
        add(path);
        add(text);
    }
    for word in compiler.command_line(folder, Path::new("")) {
        add(&word);
    }
    add(&compiler.version);
    hash.finalize().iter().take(16).fold(String::new(), |id, byte| format!("{id}{byte:02x}"))
}

/// Compiles beside the cache entry and moves the object there once it is known to be sound.
fn build(
    tree: &Tree,
    folder: &Folder,
    compiler: &Compiler,
    home: &Path,
    isolation: &Isolation,
) -> Result<Vec<String>> {
    let io = |source| Error::Io { what: home.display().to_string(), source };
    std::fs::create_dir_all(home).map_err(io)?;
    let work = tempfile::Builder::new().prefix("build-").tempdir_in(home).map_err(io)?;
    compile::write_folder(folder, work.path())?;
    let notes = compile::run(tree, folder, compiler, work.path(), isolation)?;
    let object = work.path().join(compile::OBJECT);
    check(tree, folder, &object)?;
    std::fs::rename(object, home.join("readahead.so")).map_err(io)?;
    Ok(notes)
}

fn check(tree: &Tree, folder: &Folder, object: &Path) -> Result<()> {
    let found = inspect::findings(object)?;
    let tree = tree.to_string();
    if !found.foreign.is_empty() {
        return Err(Error::ForeignSymbols { tree, symbols: found.foreign });
    }
    if !found.variables.is_empty() {
        let variables = found.variables.iter().map(|name| located(folder, name)).collect();
        return Err(Error::MutableGlobals { tree, variables });
    }
    if found.constructors {
        return Err(Error::ForeignSymbols {
            tree,
            symbols: vec!["constructor functions".to_owned()],
        });
    }
    Ok(())
}

/// `name (mm/readahead.c:31)`, where it is a variable of file scope.
fn located(folder: &Folder, name: &str) -> String {
    let base = name.split('.').next().unwrap_or_default();
    for (path, text) in folder.files.iter().filter(|(path, _)| !path.starts_with("shim/")) {
        let file = SourceFile::new(path, text.clone());
        let mut variables = file.items.iter().filter(|i| i.kind == ItemKind::Variable);
        if let Some(item) = variables.find(|i| i.names.iter().any(|n| n.text() == base)) {
            // Two lines of our own come before the file's first.
            let ours = text
                .lines()
                .take_while(|line| line.starts_with('#') && !line.contains("line 1"))
                .count()
                + 1;
            return format!("{base} ({path}:{})", file.line(item.span.start) as usize - ours);
        }
    }
    base.to_owned()
}
