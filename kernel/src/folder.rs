//! The folder that is compiled: the tree's readahead code, what was cut for it, and the stand-ins.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Component, Path};

use crate::cut::{Cut, Pass};
use crate::error::{Error, Result};
use crate::items::{Mention, Name, SourceFile};
use crate::patch::Patch;
use crate::tree::{Files, Tree};

/// Compiled as it is.
pub(crate) const READAHEAD: &str = "mm/readahead.c";
/// Cut from, in the order the kernel includes them.
const HEADERS: [&str; 4] =
    ["include/linux/xarray.h", "include/linux/fs.h", "include/linux/pagemap.h", "mm/internal.h"];
/// Cut from, each a translation unit of its own.
const CODE: [&str; 3] = ["lib/xarray.c", "mm/filemap.c", "mm/fadvise.c"];
/// Where kernels say how many folios a batch holds, and by which name.
const BATCH_SIZES: [(&str, &str); 2] = [
    ("include/linux/folio_batch.h", "FOLIO_BATCH_SIZE"),
    ("include/linux/pagevec.h", "PAGEVEC_SIZE"),
];
/// Tells the release.
const MAKEFILE: &str = "Makefile";

/// The stand-ins and the shim, as they are in the folder.
pub(crate) const SHIM: [(&str, &str); 11] = [
    ("shim/abi.h", include_str!("../shim/abi.h")),
    ("shim/config.h", include_str!("../shim/config.h")),
    ("shim/kernel.h", include_str!("../shim/kernel.h")),
    ("shim/objects.h", include_str!("../shim/objects.h")),
    ("shim/kshim.h", include_str!("../shim/kshim.h")),
    ("shim/instance.h", include_str!("../shim/instance.h")),
    ("shim/switch.h", include_str!("../shim/switch.h")),
    ("shim/shim.c", include_str!("../shim/shim.c")),
    ("shim/task.c", include_str!("../shim/task.c")),
    ("shim/switch.c", include_str!("../shim/switch.c")),
    ("shim/guard.c", include_str!("../shim/guard.c")),
];
/// Those of [`SHIM`] that are compiled on their own.
const UNITS: [&str; 4] = ["shim/shim.c", "shim/task.c", "shim/switch.c", "shim/guard.c"];
/// Those of [`SHIM`] that see the tree's code, and whose names come before the tree's.
const STAND_INS: [&str; 3] = ["shim/config.h", "shim/kernel.h", "shim/objects.h"];

/// Headers whose names the stand-ins provide or that readahead has no use for. A header that is not
/// here, because a patch includes it anew, is read from the tree and cut from like the others.
const KNOWN_HEADERS: &str = include_str!("../shim/known_headers.txt");

/// What every C file of the tree starts with, before its first line.
const UMBRELLA: &str = "#include \"../shim/kshim.h\"\n";

/// Features of the tree that the shim asks for by name.
const FEATURE: &str = "KSHIM_HAS_";

/// Everything the compiler needs, by path within the folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) files: BTreeMap<String, String>,
    /// The C files to compile.
    pub(crate) units: Vec<String>,
    /// Macros to define.
    pub(crate) features: Vec<String>,
    /// `6.12.57`, where the Makefile says so.
    pub(crate) version: Option<String>,
    /// Names cut from the tree, by file.
    pub(crate) cut: BTreeMap<String, Vec<String>>,
    /// Names the tree's files define, but the stand-ins replace.
    pub(crate) replaced: Vec<String>,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

impl Folder {
    /// Reads the tree, applies the patch and cuts.
    pub(crate) fn new(tree: &Tree, patch: Option<&Patch>, cache: &Path) -> Result<Self> {
        let read = Reading::new(tree, patch, cache)?;
        let readahead = read.file(READAHEAD)?;
        let stand_ins: Vec<SourceFile> = shim_files(&STAND_INS);
        let have: HashSet<Name> =
            stand_ins.iter().flat_map(|f| &f.items).flat_map(|i| i.names.clone()).collect();
        let own: HashSet<Name> = readahead.items.iter().flat_map(|i| i.names.clone()).collect();
        let mut roots: BTreeSet<Mention> = readahead.all_mentions();
        for file in shim_files(&["shim/shim.c", "shim/task.c", "shim/objects.h"]) {
            roots.extend(file.all_mentions());
        }
        let headers = read.headers(&readahead)?;
        let count = headers.len();
        let mut sources = headers;
        for path in CODE {
            sources.push(read.file(path)?);
        }
        let mut features = features(&sources);
        features
            .extend(batch_size(&read.after).map(|size| format!("KSHIM_FOLIO_BATCH_SIZE={size}")));
        let cut = Cut::new(sources, roots, &have, &own);
        let mut notes = read.notes.clone();
        notes.extend(hidden(patch, &read.before, &read.after, &have));
        Ok(Self {
            files: write(&read, &readahead, &cut, count),
            units: units(&cut, count),
            features,
            version: version(&read.after),
            cut: by_file(&cut),
            replaced: cut.replaced.iter().cloned().collect(),
            notes,
        })
    }
}

/// The tree's text, before and after the patch.
struct Reading<'t> {
    tree: &'t Tree,
    patch: Option<&'t Patch>,
    cache: &'t Path,
    before: Files,
    after: Files,
    notes: Vec<String>,
}

impl<'t> Reading<'t> {
    fn new(tree: &'t Tree, patch: Option<&'t Patch>, cache: &'t Path) -> Result<Self> {
        let mut paths: Vec<String> = [READAHEAD, MAKEFILE]
            .into_iter()
            .chain(HEADERS)
            .chain(CODE)
            .chain(BATCH_SIZES.map(|(header, _)| header))
            .map(str::to_owned)
            .collect();
        paths.extend(
            patch.into_iter().flat_map(Patch::paths).filter(|p| is_source(p)).map(str::to_owned),
        );
        let mut reading = Self {
            tree,
            patch,
            cache,
            before: Files::new(),
            after: Files::new(),
            notes: Vec::new(),
        };
        reading.read(&paths)?;
        // Trace headers and anything a patch includes anew are known only once the code is read.
        let mut included: BTreeSet<String> = BTreeSet::new();
        for code in [READAHEAD, "mm/filemap.c"] {
            let file = reading.file(code)?;
            included.extend(
                file.includes.iter().map(|(header, _)| header.clone()).filter(|h| is_read(h)),
            );
        }
        let paths: Vec<String> = included.iter().map(|h| format!("include/{h}")).collect();
        reading.read(&paths)?;
        reading.note_unread();
        Ok(reading)
    }

    fn read(&mut self, paths: &[String]) -> Result<()> {
        let new: Vec<String> =
            paths.iter().filter(|p| !self.before.contains_key(*p)).cloned().collect();
        let before = self.tree.read(&new, self.cache)?;
        let after = match self.patch {
            None => before.clone(),
            Some(patch) => {
                let (after, notes) = patch.apply(self.tree, &before)?;
                self.notes.extend(notes);
                after
            }
        };
        self.before.extend(before);
        self.after.extend(after);
        Ok(())
    }

    /// What the patch changes elsewhere has no effect here.
    fn note_unread(&mut self) {
        let paths = self.patch.into_iter().flat_map(Patch::paths);
        let unread = paths.filter(|path| !self.after.contains_key(*path));
        let notes: Vec<String> = unread
            .map(|path| format!("{path}: changed by the patch, but no part of the replay"))
            .collect();
        self.notes.extend(notes);
    }

    fn file(&self, path: &str) -> Result<SourceFile> {
        let text = self.after.get(path).cloned().flatten();
        let text = text.ok_or_else(|| Error::MissingFile {
            tree: self.tree.to_string(),
            path: path.to_owned(),
        })?;
        Ok(SourceFile::new(path, text))
    }

    /// The headers to cut from: those included anew first, since the others may build on them.
    fn headers(&self, readahead: &SourceFile) -> Result<Vec<SourceFile>> {
        let anew = readahead.includes.iter().map(|(h, _)| format!("include/{h}"));
        let anew = anew
            .filter(|p| !p.contains("/trace/") && self.after.get(p).is_some_and(Option::is_some));
        let paths: Vec<String> = anew
            .filter(|p| !HEADERS.contains(&p.as_str()))
            .chain(HEADERS.map(str::to_owned))
            .collect();
        paths.iter().map(|path| self.file(path)).collect()
    }
}

fn is_source(path: &str) -> bool {
    path == READAHEAD
        || HEADERS.contains(&path)
        || CODE.contains(&path)
        || path.starts_with("include/trace/events/")
}

/// A path that leads nowhere but down: what a tree includes is read by us, and written below our folder.
fn is_below(header: &str) -> bool {
    Path::new(header).components().all(|part| matches!(part, Component::Normal(_)))
}

/// A header that is read from the tree when the readahead code includes it.
fn is_read(header: &str) -> bool {
    let is_known = KNOWN_HEADERS.lines().any(|known| known == header);
    is_below(header) && (is_trace(header) || !is_known)
}

fn is_trace(header: &str) -> bool {
    header.starts_with("trace/events/")
}

fn shim_files(paths: &[&str]) -> Vec<SourceFile> {
    let chosen = SHIM.iter().filter(|(path, _)| paths.contains(path));
    chosen.map(|(path, text)| SourceFile::new(path, (*text).to_owned())).collect()
}

/// `KSHIM_HAS_name` for a name the tree defines, `KSHIM_HAS_tag__member` for a member of a structure.
fn features(sources: &[SourceFile]) -> Vec<String> {
    let asked: BTreeSet<String> = SHIM.iter().flat_map(|(_, text)| asked_features(text)).collect();
    asked.into_iter().filter(|feature| has(sources, &feature[FEATURE.len()..])).collect()
}

/// Folios that a batch holds, where the tree says so in a number.
fn batch_size(files: &Files) -> Option<u8> {
    BATCH_SIZES.iter().find_map(|(header, macro_name)| {
        let file = SourceFile::new(header, files.get(*header)?.clone()?);
        let name = Name::Plain((*macro_name).to_owned());
        let item = file.items.iter().find(|item| item.names.contains(&name))?;
        file.text[item.span.clone()].split_whitespace().nth(2)?.parse().ok()
    })
}

fn asked_features(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with(FEATURE) && w.len() > FEATURE.len()).map(str::to_owned)
}

fn has(sources: &[SourceFile], feature: &str) -> bool {
    let (name, member) = match feature.split_once("__") {
        Some((tag, member)) => (Name::Tag(tag.to_owned()), Some(member)),
        None => (Name::Plain(feature.to_owned()), None),
    };
    let defines = |file: &SourceFile| {
        let mut items = file.items.iter().filter(|i| i.names.contains(&name));
        items.any(|i| {
            member.is_none_or(|m| file.mentions(&i.span).iter().any(|x| x.name.text() == m))
        })
    };
    sources.iter().any(defines)
}

fn write(
    read: &Reading,
    readahead: &SourceFile,
    cut: &Cut,
    headers: usize,
) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> =
        SHIM.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let pass = |pass| (0..headers).map(|i| cut.render(i, pass, |_| false)).collect::<String>();
    files.insert("cut/types.h".to_owned(), pass(Pass::Types));
    files.insert("cut/functions.h".to_owned(), pass(Pass::Functions));
    files.insert(
        READAHEAD.to_owned(),
        format!("{UMBRELLA}#line 1 \"{READAHEAD}\"\n{}", readahead.text),
    );
    for i in headers..cut.files.len() {
        files.insert(
            cut.files[i].path.clone(),
            format!("{UMBRELLA}{}", cut.render(i, Pass::Everything, is_trace)),
        );
    }
    for (path, text) in &read.after {
        if let (Some(header), Some(text)) =
            (path.strip_prefix("include/").filter(|h| is_trace(h)), text)
        {
            let trace = SourceFile::new(path, text.clone());
            add_empty(&mut files, &trace);
            files.insert(format!("include/{header}"), format!("#line 1 \"{path}\"\n{text}"));
        }
    }
    add_empty(&mut files, readahead);
    files
}

/// What a header declares is included ahead of every file, so the headers themselves are empty.
fn add_empty(files: &mut BTreeMap<String, String>, source: &SourceFile) {
    for (header, _) in source.includes.iter().filter(|(header, _)| is_below(header)) {
        files.entry(format!("include/{header}")).or_default();
    }
}

fn units(cut: &Cut, headers: usize) -> Vec<String> {
    let code = cut.files[headers..].iter().map(|f| f.path.clone());
    [READAHEAD.to_owned()].into_iter().chain(code).chain(UNITS.map(str::to_owned)).collect()
}

fn by_file(cut: &Cut) -> BTreeMap<String, Vec<String>> {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, name) in cut.names() {
        names.entry(file.to_owned()).or_default().push(name.to_owned());
    }
    names
}

/// `VERSION = 6`, `PATCHLEVEL = 12`, `SUBLEVEL = 57`, `EXTRAVERSION =` of the top Makefile.
fn version(files: &Files) -> Option<String> {
    let makefile = files.get(MAKEFILE)?.as_ref()?;
    let value = |name: &str| {
        let mut lines = makefile.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let extra = value("EXTRAVERSION").unwrap_or_default();
    Some(format!("{}.{}.{}{extra}", value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?))
}

/// Changes of the patch that the stand-ins hide: what it changes, they define.
fn hidden(
    patch: Option<&Patch>,
    before: &Files,
    after: &Files,
    have: &HashSet<Name>,
) -> Vec<String> {
    let mut notes = Vec::new();
    for path in patch.into_iter().flat_map(Patch::paths) {
        let parts = |files: &Files| {
            files.get(path).cloned().flatten().map(|text| SourceFile::new(path, text))
        };
        let Some(new) = parts(after) else { continue };
        let old = parts(before).map_or_else(HashSet::new, |f| definitions(&f));
        let changed = definitions(&new);
        let hidden: BTreeSet<&str> = changed
            .difference(&old)
            .map(|(name, _)| name)
            .filter(|n| have.contains(n))
            .map(Name::text)
            .filter(|text| BATCH_SIZES.iter().all(|(_, name)| name != text))
            .collect();
        notes.extend(hidden.into_iter().map(|name| {
            format!("{path}: the patch changes `{name}`, which the replay's own stand-in replaces")
        }));
    }
    notes
}

fn definitions(file: &SourceFile) -> HashSet<(Name, String)> {
    let items =
        file.items.iter().flat_map(|i| i.names.iter().map(move |n| (n.clone(), i.span.clone())));
    items.map(|(name, span)| (name, file.text[span].to_owned())).collect()
}
