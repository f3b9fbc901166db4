//! Results on disk and put together.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use columns::{Table, Writer};

use super::{Row, SCHEMA, Slot};

/// Results that cannot be read, written or put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no table of results, or a damaged one.
    #[error(transparent)]
    Table(#[from] columns::Error),
    /// A line is none that `replay --from-list` prints.
    #[error("{path}:{line}: not a line of {SCHEMA}: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A folder without results.
    #[error("no results in {path}")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// Two rows answer the same in different ways.
    #[error(
        "{name} has two results under {policy}: the source, the device, the policy's code or the \
         version of rareplay was another; keep such results apart"
    )]
    Conflict {
        /// The source.
        name: String,
        /// The policy.
        policy: String,
    },
}

/// Rows, each slot once.
///
/// Putting results together does not depend on their order, nor on how often a row comes. Figures
/// stand where there are any, not errors; of equals that are labelled otherwise, the smallest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results(BTreeMap<Slot, Row>);

impl Results {
    /// Adds a row. It fails if the same was answered otherwise.
    pub fn add(&mut self, row: Row) -> Result<(), ResultsError> {
        let slot = row.slot();
        let Some(known) = self.0.get(&slot) else {
            self.0.insert(slot, row);
            return Ok(());
        };
        if known.error.is_none() && row.error.is_none() && known.key != row.key {
            return Err(ResultsError::Conflict { name: row.name(), policy: row.policy });
        }
        let rank = |row: &Row| (row.error.is_some(), row.clone());
        if rank(&row) < rank(known) {
            self.0.insert(slot, row);
        }
        Ok(())
    }

    /// Adds a row that takes the place of what there is, but for an error that of a result.
    pub fn replace(&mut self, row: Row) {
        let slot = row.slot();
        let stays = row.error.is_some() && self.0.get(&slot).is_some_and(|row| row.error.is_none());
        if !stays {
            self.0.insert(slot, row);
        }
    }

    /// Puts two together.
    pub fn merge(mut self, other: Self) -> Result<Self, ResultsError> {
        other.0.into_values().try_for_each(|row| self.add(row))?;
        Ok(self)
    }

    /// The row that answers the same as `row`.
    pub fn answer(&self, row: &Row) -> Option<&Row> {
        self.0.get(&row.slot())
    }

    /// All rows, in the order of their slots.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.0.values()
    }

    /// Reads the results at `path`: a table, lines of JSON, or a folder of tables.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let mut results = Self::default();
        read_rows(path, &mut |row| results.add(row))?;
        Ok(results)
    }

    /// Writes them as one table, which gets its name when it is whole.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let bytes = pack(self.rows().cloned(), &path.display().to_string())?;
        write_whole(path, &bytes)
    }
}

/// Whether there are results at a path, rather than a source.
pub fn is_results(path: &Path) -> bool {
    let is_table = |path: &Path| {
        let file = File::open(path).ok();
        let table = file.and_then(|file| Table::open(file, "").ok());
        table.is_some_and(|table| kind(table.schema()) == kind(SCHEMA))
    };
    if path.is_dir() {
        return tables(path)
            .is_ok_and(|tables| tables.first().is_some_and(|first| is_table(first)));
    }
    is_table(path) || is_lines(path).unwrap_or(false)
}

fn kind(schema: &str) -> Option<&str> {
    schema.rsplit_once('/').map(|(kind, _)| kind)
}

/// Whether a file begins like a line that `replay --from-list` prints.
fn is_lines(path: &Path) -> io::Result<bool> {
    let head = format!("{{\"schema\":\"{SCHEMA}\"");
    let mut start = Vec::new();
    File::open(path)?.take(head.len() as u64).read_to_end(&mut start)?;
    Ok(start == head.as_bytes())
}

/// Hands out the rows at `path` one by one.
pub fn read_rows(
    path: &Path,
    each: &mut dyn FnMut(Row) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    let failed = |source| ResultsError::Io { action: "read", path: path.to_owned(), source };
    if path.is_dir() {
        let tables = tables(path).map_err(failed)?;
        if tables.is_empty() {
            return Err(ResultsError::Empty { path: path.to_owned() });
        }
        return tables.iter().try_for_each(|table| read_rows(table, each));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut magic = [0; 4];
    let is_table = file.read(&mut magic).map_err(failed)? == 4 && magic == *columns::MAGIC;
    file.rewind().map_err(failed)?;
    if is_table {
        let table = Table::open(file, &path.display().to_string())?;
        for row in table.rows::<Row>()? {
            each(row?)?;
        }
        return Ok(());
    }
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(failed)?;
        let parsed: Line = serde_json::from_str(&line).map_err(|source| ResultsError::Line {
            path: path.to_owned(),
            line: at + 1,
            source,
        })?;
        parsed.results.into_iter().try_for_each(&mut *each)?;
    }
    Ok(())
}

/// What is read of a line that `replay --from-list` prints.
#[derive(serde::Deserialize)]
struct Line {
    results: Vec<Row>,
}

/// The tables in a folder and in those in it, by name.
fn tables(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(tables(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Rows as a table.
pub fn pack(rows: impl Iterator<Item = Row>, name: &str) -> Result<Vec<u8>, columns::Error> {
    let mut writer = Writer::new(Vec::new(), name)?;
    for row in rows {
        writer.push(row)?;
    }
    writer.finish(&[])
}

/// The row of a table that has one.
pub fn unpack(bytes: Vec<u8>, name: &str) -> Result<Option<Row>, columns::Error> {
    Table::open(bytes, name)?.rows()?.next().transpose()
}

/// A place that keeps small files by name. Reading and writing one is one step to everybody else.
pub trait Shelf: Sync {
    /// What is kept under a name.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, String>;
    /// Keeps it, in place of what there is.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String>;
}

/// A folder here.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Shelf for Folder {
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let path = self.0.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ResultsError::Io { action: "read", path, source }.to_string()),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        write_whole(&self.0.join(name), bytes).map_err(|error| error.to_string())
    }
}

/// Writes a file that nobody sees before it is whole, even if several processes write it at once.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let mut part = path.to_owned();
    part.as_mut_os_string().push(format!(".{}.part", std::process::id()));
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&part, bytes)?;
        fs::rename(&part, path)
    };
    write().map_err(|source| {
        drop(fs::remove_file(&part));
        ResultsError::Io { action: "write", path: path.to_owned(), source }
    })
}
