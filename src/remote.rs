//! Sources and results in object stores, by URL.
//!
//! A source is copied into a temporary folder with all that belongs to it, in pieces that are each
//! tried again where that makes sense, and is gone when it has been replayed. Stores are configured by
//! the variables that their own tools know: `AWS_*`, `GOOGLE_*`, `AZURE_*`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use analysis::fleet::{Fetched, Local, Origin, Shelf};
use anyhow::Context;
use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload,
    parse_url_opts,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use traces::sidecar::{self, Sidecar};
use url::Url;

/// Bytes asked for at a time. What fails is asked for again from the beginning of its piece.
const PIECE_BYTES: u64 = 64 << 20;

/// Beginnings of the variables that configure stores.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// A path that is a URL of something that is no file here.
pub(crate) fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| path.contains("://") && !path.starts_with("file://"))
}

/// Where the sources of a list come from.
pub(crate) fn origin(list: &Path) -> anyhow::Result<Box<dyn Origin>> {
    let base = url(list).and_then(|list| list.rsplit_once('/')).map(|(base, _)| base.to_owned());
    Ok(Box::new(Remote { local: Local::beside(list), base, stores: Stores::new()? }))
}

/// Where results are kept.
pub(crate) fn shelf(url: &str) -> anyhow::Result<Box<dyn Shelf>> {
    let stores = Stores::new()?;
    // What is wrong with the URL itself is no reason to replay anything.
    stores.open(url).map_err(anyhow::Error::msg)?;
    Ok(Box::new(RemoteFolder { url: url.trim_end_matches('/').to_owned(), stores }))
}

/// Does something with what is at a path, which may be a URL.
pub(crate) fn copy<T>(
    path: &Path,
    work: impl FnOnce(&Path) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let Some(url) = url(path) else { return work(path) };
    let stores = Stores::new()?;
    let place = stores.open(url).map_err(anyhow::Error::msg)?;
    let objects = stores.objects(&place).map_err(anyhow::Error::msg)?;
    let folder = stores.download(&place, &objects).map_err(anyhow::Error::msg)?;
    work(&folder.path().join(&place.name))
}

/// Sources by URL, and files.
struct Remote {
    local: Local,
    /// Where relative names begin if the list has a URL.
    base: Option<String>,
    stores: Stores,
}

impl Remote {
    /// The URL of a source, if it has one.
    fn url_of(&self, source: &str) -> Option<String> {
        match (url(Path::new(source)), &self.base) {
            (Some(url), _) => Some(url.to_owned()),
            (None, Some(base)) if !source.starts_with('/') => Some(format!("{base}/{source}")),
            (None, _) => None,
        }
    }
}

impl Origin for Remote {
    fn tags(&self, source: &str) -> Result<Option<String>, String> {
        let Some(url) = self.url_of(source) else { return Ok(None) };
        let place = self.stores.open(&url)?;
        let objects = self.stores.source(&place)?;
        let tag = |object: &ObjectMeta| Some(format!("{} {}", object.e_tag.as_ref()?, object.size));
        // Without a tag for each, nothing is known.
        let tags: Option<Vec<String>> = objects.iter().map(tag).collect();
        Ok(tags.map(|tags| tags.join(", ")))
    }

    fn fetch(&self, source: &str) -> Result<Fetched, String> {
        let Some(url) = self.url_of(source) else { return self.local.fetch(source) };
        let place = self.stores.open(&url)?;
        let folder = self.stores.download(&place, &self.stores.source(&place)?)?;
        let path = folder.path().join(&place.name);
        Ok(Fetched { path, guard: Some(Box::new(folder)) })
    }
}

/// Something in a store.
struct Place {
    url: String,
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// The last part of the key.
    name: String,
}

impl Place {
    /// What stands beside it.
    fn beside(&self, name: &str) -> Self {
        let parts: Vec<_> = self.key.parts().collect();
        let folder = parts[..parts.len().saturating_sub(1)].iter().cloned();
        let named = name.split('/').map(|part| part.to_owned().into());
        Self {
            url: self.url.clone(),
            store: self.store.clone(),
            key: folder.chain(named).collect(),
            name: name.to_owned(),
        }
    }

    fn failed(&self, error: &Error) -> String {
        told(&self.url, error)
    }
}

/// What went wrong, without what the store's library says of its own inner life.
fn told(url: &str, error: &Error) -> String {
    match error {
        Error::NotFound { path, .. } => format!("cannot read {url}: no object {path}"),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            format!("cannot read {url}: the store does not let us, see AWS_*, GOOGLE_*, AZURE_*")
        }
        Error::Precondition { .. } => format!("cannot read {url}: it changed while it was read"),
        other => {
            let mut text = format!("cannot read {url}: {other}");
            let mut cause = std::error::Error::source(other);
            while let Some(error) = cause {
                let said = error.to_string();
                if !text.contains(&said) {
                    text = format!("{text}: {said}");
                }
                cause = error.source();
            }
            text.replace('\n', " ")
        }
    }
}

/// Stores that are open.
struct Stores {
    runtime: Runtime,
    open: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
}

impl Stores {
    fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start the threads that talk to object stores")?;
        Ok(Self { runtime, open: Mutex::default() })
    }

    /// What a URL names.
    fn open(&self, url: &str) -> Result<Place, String> {
        let bad = |reason: &dyn std::fmt::Display| format!("{url} cannot be used: {reason}");
        let parsed = Url::parse(url).map_err(|error| bad(&error))?;
        let mut options: Vec<(String, String)> = std::env::vars()
            .filter(|(name, _)| VARIABLES.iter().any(|start| name.starts_with(start)))
            .collect();
        if parsed.scheme() == "http" {
            options.push(("allow_http".to_owned(), "true".to_owned()));
        }
        let (store, key) = parse_url_opts(&parsed, options).map_err(|error| bad(&error))?;
        let server = parsed[..url::Position::BeforePath].to_owned();
        // One for each server and bucket, for its connections and credentials.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let store = open.entry(server).or_insert_with(|| store.into()).clone();
        let name = key.filename().unwrap_or_default().to_owned();
        Ok(Place { url: url.to_owned(), store, key, name })
    }

    /// The object there; those below it where it is a folder.
    fn objects(&self, place: &Place) -> Result<Vec<ObjectMeta>, String> {
        if let Some(object) = self.object(place)? {
            return Ok(vec![object]);
        }
        let missing = || format!("cannot read {}: no object {}", place.url, place.key);
        let listed = place.store.list(Some(&place.key)).try_collect::<Vec<_>>();
        match self.runtime.block_on(listed) {
            Ok(objects) if !objects.is_empty() => Ok(objects),
            // Plain web servers have no lists.
            Ok(_)
            | Err(
                Error::NotFound { .. }
                | Error::NotSupported { .. }
                | Error::Generic { store: "HTTP", .. },
            ) => Err(missing()),
            Err(error) => Err(place.failed(&error)),
        }
    }

    fn object(&self, place: &Place) -> Result<Option<ObjectMeta>, String> {
        match self.runtime.block_on(place.store.head(&place.key)) {
            Ok(object) => Ok(Some(object)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(place.failed(&error)),
        }
    }

    /// The objects of a source: its own, its sidecar, and what that names.
    fn source(&self, place: &Place) -> Result<Vec<ObjectMeta>, String> {
        let mut objects = self.objects(place)?;
        for name in sidecar::names_for(&place.name) {
            let beside = place.beside(&name);
            let Some(object) = self.object(&beside)? else { continue };
            objects.push(object);
            let text = self.bytes(&beside)?.unwrap_or_default();
            // What is wrong with it is said when it is used.
            let parsed = toml_of(&text).unwrap_or_default();
            for named in parsed.join.iter().chain(&parsed.accesses) {
                objects.extend(self.objects(&place.beside(named))?);
            }
            break;
        }
        Ok(objects)
    }

    fn bytes(&self, place: &Place) -> Result<Option<Vec<u8>>, String> {
        let read = async { place.store.get(&place.key).await?.bytes().await };
        match self.runtime.block_on(read) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(place.failed(&error)),
        }
    }

    /// Copies objects to a folder that goes away with what is returned.
    fn download(&self, place: &Place, objects: &[ObjectMeta]) -> Result<TempDir, String> {
        let failed = |error: std::io::Error| format!("cannot copy {}: {error}", place.url);
        let folder = tempfile::tempdir().map_err(failed)?;
        let above = place.key.parts().count().saturating_sub(1);
        for object in objects {
            let mut path = folder.path().to_owned();
            path.extend(object.location.parts().skip(above).map(|part| part.as_ref().to_owned()));
            fs::create_dir_all(path.parent().unwrap_or(folder.path())).map_err(failed)?;
            let file = File::create(&path).map_err(failed)?;
            self.runtime.block_on(stream(place, object, file))?;
        }
        Ok(folder)
    }
}

fn toml_of(text: &[u8]) -> Option<Sidecar> {
    Sidecar::parse(std::str::from_utf8(text).ok()?).ok()
}

/// Copies an object, all of it in the state it was found in.
async fn stream(place: &Place, object: &ObjectMeta, mut file: File) -> Result<(), String> {
    let mut at = 0;
    while at < object.size {
        let end = object.size.min(at + PIECE_BYTES);
        let is_whole = at == 0 && end == object.size;
        let options = GetOptions {
            range: (!is_whole).then_some(GetRange::Bounded(at..end)),
            if_match: object.e_tag.clone(),
            ..GetOptions::default()
        };
        let failed = |error| place.failed(&error);
        let got = place.store.get_opts(&object.location, options).await.map_err(failed)?;
        let mut bytes = got.into_stream();
        while let Some(some) = bytes.try_next().await.map_err(failed)? {
            file.write_all(&some).map_err(|error| format!("cannot copy {}: {error}", place.url))?;
            at += some.len() as u64;
        }
        if at < end {
            return Err(format!("cannot read {}: it ends at byte {at} of {end}", place.url));
        }
    }
    Ok(())
}

/// Results by URL.
struct RemoteFolder {
    url: String,
    stores: Stores,
}

impl Shelf for RemoteFolder {
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.stores.bytes(&self.stores.open(&format!("{}/{name}", self.url))?)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let place = self.stores.open(&format!("{}/{name}", self.url))?;
        let payload = PutPayload::from(bytes.to_vec());
        let put = self.stores.runtime.block_on(place.store.put(&place.key, payload));
        put.map(drop).map_err(|error| place.failed(&error).replacen("read", "write", 1))
    }
}
