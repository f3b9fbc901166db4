//! Sources and results by URL, in a program built without what that takes.

use std::path::Path;

use analysis::fleet::{Fetched, Local, Origin, Shelf};

const MISSING: &str = "is a URL, which needs rareplay built with `--features remote`";

/// Files, and a refusal for what is none.
struct NoRemote(Local);

impl Origin for NoRemote {
    fn fetch(&self, source: &str) -> Result<Fetched, String> {
        match url(Path::new(source)) {
            Some(url) => Err(format!("{url} {MISSING}")),
            None => self.0.fetch(source),
        }
    }
}

/// Where the sources of a list come from.
#[expect(clippy::unnecessary_wraps, reason = "where there are stores it can fail")]
pub(crate) fn origin(list: &Path) -> anyhow::Result<Box<dyn Origin>> {
    Ok(Box::new(NoRemote(Local::beside(list))))
}

/// A path that is a URL of something that is no file here.
pub(crate) fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| path.contains("://") && !path.starts_with("file://"))
}

/// Where results are kept.
pub(crate) fn shelf(url: &str) -> anyhow::Result<Box<dyn Shelf>> {
    anyhow::bail!("{url} {MISSING}")
}

/// Does something with what is at a path, which may be a URL.
pub(crate) fn copy<T>(
    path: &Path,
    work: impl FnOnce(&Path) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    match url(path) {
        Some(url) => anyhow::bail!("{url} {MISSING}"),
        None => work(path),
    }
}
