//! Replaying the entries of a list.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use replay::policy::Policy;
use traces::settings::Origin as Known;

use super::key::{Content, key};
use super::{Listed, Row, WaitCounts};
use crate::gate::{MeasureOptions, Outcome, Prepared, Refusal, bad_input};
use crate::replay::summarize;

/// Where the sources of a list come from.
pub trait Origin: Sync {
    /// Tells one content of a source from another without reading it, where that can be had.
    fn tags(&self, source: &str) -> Result<Option<String>, String> {
        let _ = source;
        Ok(None)
    }

    /// A source as a file or folder here, with all that belongs to it.
    fn fetch(&self, source: &str) -> Result<Fetched, String>;
}

/// A source that is here, as long as this is.
pub struct Fetched {
    /// Where.
    pub path: PathBuf,
    /// What goes away with it, such as a folder of copies.
    pub guard: Option<Box<dyn Any + Send>>,
}

/// Files here.
#[derive(Clone, Debug)]
pub struct Local {
    /// Where relative paths begin.
    pub folder: PathBuf,
}

impl Local {
    /// For the sources of a list: relative paths begin where the list is.
    pub fn beside(list: &Path) -> Self {
        Self { folder: list.parent().unwrap_or(Path::new("")).to_owned() }
    }
}

impl Origin for Local {
    fn fetch(&self, source: &str) -> Result<Fetched, String> {
        let path = source.strip_prefix("file://").unwrap_or(source);
        Ok(Fetched { path: self.folder.join(path), guard: None })
    }
}

/// What a list is replayed with.
pub struct Fleet<'a> {
    /// Policies; each gives a row for each entry.
    pub policies: Vec<Arc<dyn Policy>>,
    /// How sources are loaded and replayed. Settings of an entry come on top.
    pub measure: MeasureOptions,
    /// Where sources come from.
    pub origin: &'a dyn Origin,
}

/// Whether a row had to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It was.
    Now,
    /// It was there.
    Before,
}

impl Fleet<'_> {
    /// Replays a list, as many entries at a time as there are CPUs, and hands each one's rows to
    /// `each`, which ends it all if it fails.
    ///
    /// The threads are no part of the pool that replays share: one of the pool's that waits for a part
    /// of its entry would begin another, and the captures in memory would be any number.
    pub fn replay_all<E: Send>(
        &self,
        list: &[Listed],
        known: &(dyn Fn(&Row) -> Option<Row> + Sync),
        each: &(dyn Fn(Vec<(Row, Made)>) -> Result<(), E> + Sync),
    ) -> Result<(), E> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(listed) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                each(self.replay(listed, known)).inspect_err(|_| {
                    next.store(list.len(), Ordering::Relaxed);
                })?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..rayon::current_num_threads()).map(|_| scope.spawn(work)).collect();
            let ends = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ends.collect::<Vec<_>>().into_iter().collect()
        })
    }

    /// Replays an entry under every policy. `known` gives the row that is there for a row's slot.
    ///
    /// Nothing that is wrong with a source goes beyond its rows, not even a bug it brings to light.
    pub fn replay(
        &self,
        listed: &Listed,
        known: &(dyn Fn(&Row) -> Option<Row> + Sync),
    ) -> Vec<(Row, Made)> {
        let rows: Vec<Row> =
            self.policies.iter().map(|policy| self.blank(listed, &**policy)).collect();
        let caught = catch_unwind(AssertUnwindSafe(|| self.fill(rows.clone(), listed, known)));
        caught.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let reason = format!("a bug: {}", said.unwrap_or_default());
            let failed = |row| Row {
                error: Some(reason.clone()),
                error_kind: Some(super::row::BUG.to_owned()),
                ..row
            };
            rows.into_iter().map(|row| (failed(row), Made::Now)).collect()
        })
    }

    /// The row of an entry before anything is known of it.
    fn blank(&self, listed: &Listed, policy: &dyn Policy) -> Row {
        let mut given = BTreeMap::new();
        given.extend(self.measure.load.set.iter().cloned().chain(listed.settings()));
        Row {
            source: listed.source.clone(),
            host: listed.host.clone(),
            kernel: listed.kernel.clone(),
            workload: listed.workload.clone(),
            time: listed.time.clone(),
            policy: policy.name().to_owned(),
            device: self.measure.model.name.clone(),
            settings_given: given.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Row::default()
        }
    }

    fn fill(
        &self,
        rows: Vec<Row>,
        listed: &Listed,
        known: &(dyn Fn(&Row) -> Option<Row> + Sync),
    ) -> Vec<(Row, Made)> {
        let mut asked = Asked::new(self, rows, listed, known);
        match self.origin.tags(&listed.source) {
            Ok(tags) => asked.rows.iter_mut().for_each(|row| row.tags.clone_from(&tags)),
            Err(reason) => return asked.refused(&bad_input(&reason)),
        }
        if let Some(rows) = asked.unchanged() {
            return rows.into_iter().map(|row| (row, Made::Before)).collect();
        }
        let fetched = match self.origin.fetch(&listed.source) {
            Ok(fetched) => fetched,
            Err(reason) => return asked.refused(&bad_input(&reason)),
        };
        asked.answered(&fetched.path, &listed.source)
    }
}

/// An entry of a list under all policies: the rows to fill in, and those that are there.
struct Asked<'a> {
    policies: &'a [Arc<dyn Policy>],
    options: MeasureOptions,
    rows: Vec<Row>,
    before: Vec<Option<Row>>,
}

impl<'a> Asked<'a> {
    fn new(
        fleet: &'a Fleet<'_>,
        rows: Vec<Row>,
        listed: &Listed,
        known: &(dyn Fn(&Row) -> Option<Row> + Sync),
    ) -> Self {
        let mut options = fleet.measure.clone();
        options.load.set.extend(listed.settings());
        // What is there has to say the same of its source as the list.
        let is_same = |before: &Row, row: &Row| {
            before.error.is_none() && (row.kernel.is_none() || row.kernel == before.kernel)
        };
        let before = rows.iter().map(|row| known(row).filter(|before| is_same(before, row)));
        let before = before.collect();
        Self { policies: &fleet.policies, options, rows, before }
    }

    fn refused(self, refusal: &Refusal) -> Vec<(Row, Made)> {
        let refused = |mut row: Row| {
            row.set_refusal(refusal);
            (row, Made::Now)
        };
        self.rows.into_iter().map(refused).collect()
    }

    /// The row that is there for a policy, if it would come out the same of this content.
    fn done(&self, content: &str, i: usize) -> Option<Row> {
        let key = key(content, &*self.policies[i], &self.options);
        self.before[i].clone().filter(|before| before.key.as_ref() == Some(&key))
    }

    /// All rows, if they are there and the source has the tags it had: then it has the content it had,
    /// which need not be fetched for that.
    fn unchanged(&self) -> Option<Vec<Row>> {
        let unchanged = |(i, row): (usize, &Row)| {
            let before = self.before[i].as_ref()?;
            let is_known = row.tags.is_some() && before.tags == row.tags;
            self.done(before.content.as_ref().filter(|_| is_known)?, i)
        };
        self.rows.iter().enumerate().map(unchanged).collect()
    }

    /// Replays what is not there. `name` is what the list calls the source, which says more than where
    /// a copy of it lies.
    fn answered(mut self, path: &Path, name: &str) -> Vec<(Row, Made)> {
        let place = path.display().to_string();
        let told =
            |refusal: Refusal| Refusal { reason: refusal.reason.replace(&place, name), ..refusal };
        let content = match Content::of(path) {
            Ok(content) => content,
            Err(error) => return self.refused(&told(bad_input(&error))),
        };
        for (row, policy) in self.rows.iter_mut().zip(self.policies) {
            row.key = Some(key(&content.hash, &**policy, &self.options));
            row.content = Some(content.hash.clone());
            row.source_bytes = Some(content.bytes.cast_signed());
        }
        let done: Vec<Option<Row>> =
            (0..self.rows.len()).map(|i| self.done(&content.hash, i)).collect();
        let is_missing = done.iter().any(Option::is_none);
        let prepared = is_missing
            .then(|| Prepared::with_digest(path, content.digest, &self.options).map_err(told));
        let numbered: Vec<(usize, Row)> = self.rows.into_iter().enumerate().collect();
        let answer = |((i, mut row), done): ((usize, Row), Option<Row>)| {
            if let Some(done) = done {
                return (done, Made::Before);
            }
            match &prepared {
                Some(Ok(prepared)) => {
                    replay(&mut row, prepared, &*self.policies[i], &self.options);
                }
                Some(Err(refusal)) => row.set_refusal(refusal),
                None => unreachable!("what is not done is prepared"),
            }
            (row, Made::Now)
        };
        numbered.into_par_iter().zip(done).map(answer).collect()
    }
}

/// Fills in what a policy makes of a source.
fn replay(row: &mut Row, prepared: &Prepared, policy: &dyn Policy, options: &MeasureOptions) {
    let model = &options.model;
    let source = &prepared.source;
    let (machine, timeline) = model.run(source, policy, &model.options());
    let result = summarize(source, policy.name(), &machine, &timeline);
    let kernel = &source.settings.kernel;
    if row.kernel.is_none() && kernel.origin != Known::Assumed {
        row.kernel = Some(kernel.value.clone());
    }
    let outcome: Outcome = prepared.entry(&result, model);
    match outcome {
        Ok(entry) => {
            row.set_entry(&entry);
            row.set_waits(&WaitCounts::of(&timeline.waits_sorted()));
            let sizes = result.request_sizes.iter();
            let sizes = sizes.map(|size| (size.bytes.cast_signed(), size.count.cast_signed()));
            (row.request_bytes, row.request_counts) = sizes.unzip();
        }
        Err(refusal) => row.set_refusal(&refusal),
    }
}
