//! Trees to build from: our own small one, and edited copies.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use kernel::{
    Built, Decided, Decisions, InstanceSettings, Isolation, Limits, Options, Session, Tree,
};
use tempfile::TempDir;

/// One cache for the test binary: what the tests share is built once.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Our own tree.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree")
}

/// A worker with less memory than usual.
pub(crate) fn worker() -> Isolation {
    impatient_worker(Duration::from_secs(20))
}

/// A worker whose accesses may take no longer than `access_time`.
pub(crate) fn impatient_worker(access_time: Duration) -> Isolation {
    Isolation::Worker(Limits {
        program: Some(env!("CARGO_BIN_EXE_rareplay-kernel-worker").into()),
        access_time,
        memory_bytes: 1 << 28,
        ..Limits::default()
    })
}

pub(crate) fn options() -> Options {
    Options { isolation: worker(), cache: Some(CACHE.path().to_owned()), ..Options::default() }
}

pub(crate) fn build(tree: &Path) -> kernel::Result<Built> {
    Built::new(&Tree::parse(&tree.display().to_string())?, &options())
}

/// A copy of the parts of a tree that are read.
pub(crate) struct Copy {
    pub(crate) folder: TempDir,
}

const READ: [&str; 13] = [
    "Makefile",
    "mm/readahead.c",
    "mm/filemap.c",
    "mm/fadvise.c",
    "mm/internal.h",
    "lib/xarray.c",
    "include/linux/fs.h",
    "include/linux/pagemap.h",
    "include/linux/pagevec.h",
    "include/linux/folio_batch.h",
    "include/linux/xarray.h",
    "include/trace/events/readahead.h",
    "include/trace/events/filemap.h",
];

impl Copy {
    pub(crate) fn of(tree: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in READ {
            let to = folder.path().join(file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            if tree.join(file).exists() {
                std::fs::copy(tree.join(file), to).unwrap();
            }
        }
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn edit(&self, file: &str, edit: impl FnOnce(String) -> String) -> &Self {
        let path = self.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let new = edit(text.clone());
        assert_ne!(text, new, "the edit of {file} found nothing to change");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, new).unwrap();
        self
    }

    pub(crate) fn insert_after(&self, file: &str, anchor: &str, new: &str) -> &Self {
        self.edit(file, |text| text.replacen(anchor, &format!("{anchor}{new}"), 1))
    }

    /// Puts a statement at the start of the definition of `function`, on the line of its brace.
    pub(crate) fn at_start_of(&self, file: &str, function: &str, statement: &str) -> &Self {
        self.edit(file, |text| {
            let definition = format!("\nvoid {function}(");
            let at = text.find(&definition).unwrap();
            let brace = at + text[at..].find("\n{").unwrap() + 2;
            format!("{}{statement}{}", &text[..brace], &text[brace..])
        })
    }
}

/// 64 KiB reads of a 1 MiB file from its start: `count` of them.
pub(crate) fn sequential(session: &Session, count: u64) -> kernel::Result<Decisions> {
    use kernel::Access;
    use traces::units::ByteOffset;

    let mut instance =
        session.instance(InstanceSettings { i_size: 1 << 20, ..InstanceSettings::default() })?;
    let file = instance.open()?;
    let reads: Vec<_> =
        (0..count).map(|i| Access::read(file, ByteOffset(i << 16), 1 << 16)).collect();
    instance.replay(&reads).cloned()
}

/// One line per decision.
pub(crate) fn shown(decisions: &Decisions) -> String {
    let mut text = String::new();
    for decision in decisions.iter() {
        _ = write!(text, "{}: ", decision.access);
        match decision.what {
            Decided::Trigger { trigger, index, req_count } => {
                _ = writeln!(text, "{trigger:?} {index} +{req_count}");
            }
            Decided::Window { start, size, async_size, order } => {
                let order = order.map_or_else(|| "-".to_owned(), |o| o.to_string());
                _ = writeln!(text, "window {start} +{size} async {async_size} order {order}");
            }
            Decided::Folio { index, order, marked } => {
                _ = writeln!(
                    text,
                    "folio {index} order {order}{}",
                    if marked { " marked" } else { "" }
                );
            }
            Decided::DeviceRead { start, pages } => _ = writeln!(text, "read {start} +{pages}"),
            Decided::Fault { index, major } => _ = writeln!(text, "fault {index} major {major}"),
            Decided::Mapped { index, pages } => _ = writeln!(text, "mapped {index} +{pages}"),
            Decided::Dropped { index, order } => {
                _ = writeln!(text, "dropped {index} order {order}");
            }
            other => _ = writeln!(text, "{other:?}"),
        }
    }
    text
}
