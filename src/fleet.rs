//! `rareplay replay --from-list`, `rareplay merge`, and what other commands make of results.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use analysis::compare::{Metric, Verdict};
use analysis::fleet::{
    Fleet, FleetOptions, FleetReport, Folder, Group, Made, Results, Row, Shelf, is_results, pack,
    read_list, read_rows, unpack,
};
use analysis::gate::{GateReport, MeasureOptions, Side, judge};

use crate::cli::{By, Format, InspectArgs, MergeArgs, ReplayArgs, ReportArgs, UsageError};
use crate::progress::Progress;
use crate::{exit, gate, inspect, output, remote, sources};

/// Replays every source of a list.
pub(crate) fn replay(args: &ReplayArgs, list: &Path) -> anyhow::Result<u8> {
    let input = &args.source.input;
    if !input.join.is_empty() || input.accesses.is_some() {
        let what =
            "--join and --accesses are for one capture; sidecars say them for those of a list";
        return Err(UsageError(what.to_owned()).into());
    }
    let origin = remote::origin(list)?;
    let fleet = Fleet {
        policies: sources::policies(&args.policies, &args.tree)?,
        measure: MeasureOptions {
            load: args.source.options(),
            allow_loss: input.allow_loss,
            model: sources::model(&args.device)?,
        },
        origin: &*origin,
    };
    let list = remote::copy(list, |list| Ok(read_list(list)?))?;
    let keep = Keep::new(args.results.as_deref())?;
    let progress = Progress::new("replaying sources", list.len());
    let summary = Mutex::new(Summary::default());
    fleet.replay_all(&list, &|row| keep.known(row), &|rows| {
        let failed = rows.iter().find(|(row, _)| row.error.is_some());
        if let Some((Row { source, error: Some(error), .. }, _)) = failed {
            // Most reasons name the source.
            let name = if error.contains(source) { "" } else { &format!("{source}: ") };
            progress.aside(|| eprintln!("rareplay: {name}{error}"));
        }
        lock(&summary).add(&rows);
        progress.aside(|| keep.keep(rows))?;
        progress.step();
        anyhow::Ok(())
    })?;
    drop(progress);
    keep.finish()?;
    let summary = lock(&summary);
    eprintln!("rareplay: {summary}");
    Ok(summary.code)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a list went.
#[derive(Default)]
struct Summary {
    sources: u64,
    before: u64,
    failed: u64,
    code: u8,
}

impl Summary {
    fn add(&mut self, rows: &[(Row, Made)]) {
        self.sources += 1;
        self.before += u64::from(rows.iter().all(|(_, made)| *made == Made::Before));
        let kinds = || rows.iter().filter_map(|(row, _)| row.error_kind.as_deref());
        self.failed += u64::from(kinds().next().is_some());
        for kind in kinds() {
            let code = match kind {
                _ if kind == Verdict::DataLoss.name() => exit::DATA_LOSS,
                _ if kind == Verdict::BadInput.name() => exit::BAD_INPUT,
                _ => exit::BUG,
            };
            self.code = self.code.max(code);
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.sources - self.before - self.failed;
        write!(
            f,
            "{} listed: {now} replayed, {} there before, {} without figures",
            reports::counted(self.sources, "source", "sources"),
            self.before,
            self.failed
        )
    }
}

/// Where the results of a list go.
enum Keep {
    /// To standard output, as lines.
    Print,
    /// Each into a table of its own, called after its slot.
    Shelf(Box<dyn Shelf>),
    /// All into one table, in the end.
    Table { path: PathBuf, results: Mutex<Results> },
}

impl Keep {
    fn new(output: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = output else { return Ok(Self::Print) };
        if let Some(url) = remote::url(path) {
            return Ok(Self::Shelf(remote::shelf(url)?));
        }
        let is_table = path.extension().is_some_and(|extension| extension == "parquet");
        if path.is_dir() || !is_table {
            return Ok(Self::Shelf(Box::new(Folder(path.to_owned()))));
        }
        let results = if path.exists() { Results::read(path)? } else { Results::default() };
        Ok(Self::Table { path: path.to_owned(), results: Mutex::new(results) })
    }

    /// The row that answers the same as `row`.
    fn known(&self, row: &Row) -> Option<Row> {
        match self {
            Self::Print => None,
            // One that cannot be read is made anew, and takes its place.
            Self::Shelf(shelf) => {
                let name = name_of(row);
                unpack(shelf.get(&name).ok().flatten()?, &name).ok().flatten()
            }
            Self::Table { results, .. } => lock(results).answer(row).cloned(),
        }
    }

    fn keep(&self, rows: Vec<(Row, Made)>) -> anyhow::Result<()> {
        match self {
            Self::Print => {
                let rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
                return output::print(&reports::json::results(&rows));
            }
            Self::Shelf(shelf) => {
                for (row, _) in rows.into_iter().filter(|(_, made)| *made == Made::Now) {
                    let stays = row.error.is_some()
                        && self.known(&row).is_some_and(|known| known.error.is_none());
                    if !stays {
                        let name = name_of(&row);
                        let bytes = pack(std::iter::once(row), &name)?;
                        shelf.put(&name, &bytes).map_err(anyhow::Error::msg)?;
                    }
                }
            }
            Self::Table { results, .. } => {
                for (row, _) in rows {
                    lock(results).replace(row);
                }
            }
        }
        Ok(())
    }

    fn finish(&self) -> anyhow::Result<()> {
        if let Self::Table { path, results } = self {
            lock(results).write(path)?;
        }
        Ok(())
    }
}

fn name_of(row: &Row) -> String {
    format!("{}.parquet", row.slot())
}

/// Puts results together into one table.
pub(crate) fn merge(args: &MergeArgs) -> anyhow::Result<u8> {
    let results = read(&args.results)?;
    results.write(&args.output)?;
    let rows = reports::counted(results.rows().len() as u64, "result", "results");
    output::print(&format!("{}: {rows}\n", args.output.display()))?;
    Ok(exit::OK)
}

/// Whether results are given rather than sources.
pub(crate) fn are_results(paths: &[PathBuf]) -> bool {
    let are = |path: &PathBuf| remote::url(path).is_some() || is_results(path);
    !paths.is_empty() && paths.iter().all(are)
}

/// Fails where an option for results meets something else.
pub(crate) fn only_for_results(given: &[(&str, bool)]) -> Result<(), UsageError> {
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => {
            Err(UsageError(format!("{name} is for results of `replay --from-list`")))
        }
        None => Ok(()),
    }
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Results> {
    let mut results = Results::default();
    for path in paths {
        remote::copy(path, |path| Ok(read_rows(path, &mut |row| results.add(row))?))?;
    }
    Ok(results)
}

/// One side for each policy of some results.
pub(crate) fn sides(paths: &[PathBuf], by: Option<By>) -> anyhow::Result<Vec<Side>> {
    Ok(analysis::fleet::sides(&read(paths)?, by.map(Group::from)))
}

/// The side of a policy.
pub(crate) fn side_of<'a>(sides: &'a [Side], policy: &str) -> anyhow::Result<&'a Side> {
    sides.iter().find(|side| side.name == policy).ok_or_else(|| {
        let known: Vec<_> = sides.iter().map(|side| side.name.as_str()).collect();
        UsageError(format!("no results under {policy}; there are some under {}", known.join(", ")))
            .into()
    })
}

fn fleet_report(results: &Results, paths: &[PathBuf], options: &FleetOptions) -> FleetReport {
    let name: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    FleetReport::new(&name.join(", "), results.rows().cloned(), options)
}

/// Shows what results come to.
pub(crate) fn inspect(args: &InspectArgs) -> anyhow::Result<u8> {
    let options = FleetOptions {
        by: args.by.map_or(Group::Host, Group::from),
        metric: args.metric.unwrap_or(Metric::ReadWaitP99),
        first: None,
    };
    let mut report = fleet_report(&read(&args.captures)?, &args.captures, &options);
    if let Some(count) = args.top.or(inspect::listed(args.output.format)) {
        report.keep_worst(count);
    }
    output::print(&match args.output.format {
        Format::Text => reports::text::fleet(&report, &output::style()),
        Format::Json => reports::json::fleet(&report),
        Format::Csv => reports::csv::fleet(&report),
        Format::Markdown => reports::markdown::fleet(&report),
        Format::Mail => {
            let what = "results are shown as text, json, csv or markdown";
            return Err(UsageError(what.to_owned()).into());
        }
    })?;
    Ok(exit::OK)
}

/// Writes a page over results.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<u8> {
    if args.png {
        return Err(UsageError("--png: a page of results has no charts".to_owned()).into());
    }
    let results = read(&args.sources)?;
    let options = FleetOptions {
        by: args.by.map_or(Group::Host, Group::from),
        metric: Metric::ReadWaitP99,
        first: args.baseline.as_ref().or(args.policies.first()).cloned(),
    };
    let report = fleet_report(&results, &args.sources, &options);
    let gate = judged(args, &results)?;
    reports::write_fleet(&report, gate.as_ref(), &args.directory)?;
    eprintln!("wrote {}", args.directory.join("index.html").display());
    Ok(exit::OK)
}

/// The gate's judgement, where two sides are named.
fn judged(args: &ReportArgs, results: &Results) -> anyhow::Result<Option<GateReport>> {
    let named = args.baseline.iter().chain(&args.candidate).chain(&args.policies);
    let [from, to] = &named.collect::<Vec<_>>()[..] else { return Ok(None) };
    let sides = analysis::fleet::sides(results, args.by.map(Group::from));
    let budgets = gate::budgets(args.budget.as_deref())?;
    let saved = gate::is_saved(Path::new(from)).then(|| gate::saved_side(Path::new(from), args.by));
    let report = match saved {
        Some(saved) => judge(&saved?, side_of(&sides, to)?, &budgets),
        None => judge(side_of(&sides, from)?, side_of(&sides, to)?, &budgets),
    };
    Ok(Some(report))
}
