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
        match source.strip_prefix("file://") {
            None if source.contains("://") => Err(format!(
                "{source} is a URL, which needs rareplay built with `--features remote`"
            )),
            path => Ok(Fetched { path: self.folder.join(path.unwrap_or(source)), guard: None }),
        }
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
        mut rows: Vec<Row>,
        listed: &Listed,
        known: &(dyn Fn(&Row) -> Option<Row> + Sync),
    ) -> Vec<(Row, Made)> {
        let mut options = self.measure.clone();
        options.load.set.extend(listed.settings());
        let before: Vec<Option<Row>> =
            rows.iter().map(|row| known(row).filter(|before| is_same(before, row))).collect();
        let tags = match self.origin.tags(&listed.source) {
            Ok(tags) => tags,
            Err(reason) => return refused(rows, &bad_input(&reason)),
        };
        rows.iter_mut().for_each(|row| row.tags.clone_from(&tags));
        let done = |content: &str, i: usize| {
            let key = key(content, &*self.policies[i], &options);
            before[i].clone().filter(|before| before.key.as_ref() == Some(&key))
        };
        // A source whose tags are the same has the content it had, which need not be fetched for that.
        let unchanged = |i: usize| {
            let before =
                before[i].as_ref().filter(|before| tags.is_some() && before.tags == tags)?;
            done(before.content.as_ref()?, i)
        };
        if let Some(all) = (0..rows.len()).map(unchanged).collect::<Option<Vec<Row>>>() {
            return all.into_iter().map(|row| (row, Made::Before)).collect();
        }
        let fetched = match self.origin.fetch(&listed.source) {
            Ok(fetched) => fetched,
            Err(reason) => return refused(rows, &bad_input(&reason)),
        };
        // What the list calls it says more than where a copy of it lies.
        let place = fetched.path.display().to_string();
        let told = |refusal: Refusal| Refusal {
            reason: refusal.reason.replace(&place, &listed.source),
            ..refusal
        };
        let content = match Content::of(&fetched.path) {
            Ok(content) => content,
            Err(error) => return refused(rows, &told(bad_input(&error))),
        };
        for (row, policy) in rows.iter_mut().zip(&self.policies) {
            row.key = Some(key(&content.hash, &**policy, &options));
            row.content = Some(content.hash.clone());
            row.source_bytes = Some(content.bytes.cast_signed());
        }
        let done: Vec<Option<Row>> = (0..rows.len()).map(|i| done(&content.hash, i)).collect();
        let missing: Vec<usize> = (0..rows.len()).filter(|i| done[*i].is_none()).collect();
        let prepared = if missing.is_empty() {
            None
        } else {
            Some(Prepared::with_digest(&fetched.path, content.digest, &options).map_err(told))
        };
        let numbered: Vec<(usize, Row)> = rows.into_iter().enumerate().collect();
        numbered
            .into_par_iter()
            .zip(done)
            .map(|((i, mut row), done)| match (done, &prepared) {
                (Some(done), _) => (done, Made::Before),
                (None, Some(Ok(prepared))) => {
                    replay(&mut row, prepared, &*self.policies[i], &options);
                    (row, Made::Now)
                }
                (None, Some(Err(refusal))) => {
                    row.set_refusal(refusal);
                    (row, Made::Now)
                }
                (None, None) => unreachable!("what is not done is prepared"),
            })
            .collect()
    }
}

/// Rows of a source that cannot be replayed.
fn refused(rows: Vec<Row>, refusal: &Refusal) -> Vec<(Row, Made)> {
    let refused = |mut row: Row| {
        row.set_refusal(refusal);
        (row, Made::Now)
    };
    rows.into_iter().map(refused).collect()
}

/// Whether a row that is there says the same of its source as the list.
fn is_same(before: &Row, row: &Row) -> bool {
    before.error.is_none() && (row.kernel.is_none() || row.kernel == before.kernel)
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
