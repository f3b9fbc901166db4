//! `rareplay gate`
//!
//! Everything that ends a gate, a refusal as much as a verdict, goes through one
//! report, so that every format, the verdict file and the exit code agree.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use analysis::compare::Verdict;
use analysis::fleet::is_results;
use analysis::gate::{
    Budgets, Date, GateError, GateReport, MeasureOptions, Side, SourceFile, expand,
    explain_regressions, judge, measure, read_saved_side, recorded_side, self_test, write_baseline,
};
use analysis::history::History;
use analysis::load::LoadOptions;
use analysis::replay::Model;
use analysis::tree::PREFIX;
use anyhow::Context;
use chrono::{DateTime, Datelike};
use replay::policy::Policy;
use reports::text::Style;

use crate::cli::{By, GateArgs, GateFormat, TreeArgs, UsageError};
use crate::progress::Progress;
use crate::{exit, fleet, output, sources};

/// `git bisect run` takes this as "this revision cannot be tested".
const BISECT_SKIP: u8 = 125;

pub(crate) fn run(args: &GateArgs) -> anyhow::Result<u8> {
    let result = write_verdict(args, "verdict=incomplete\nexit_code=70\n").and_then(|()| {
        // To git bisect, the exit code of a bug would be that of a bad revision.
        let whole = || gate(args);
        if !args.bisect {
            return whole();
        }
        let caught = std::panic::catch_unwind(AssertUnwindSafe(whole));
        caught.unwrap_or_else(|_| Err(anyhow::anyhow!("a bug ended the gate")))
    });
    result.or_else(|error| {
        let code = if args.bisect { BISECT_SKIP } else { exit::of_error(&error) };
        write_verdict(args, &format!("verdict=error\nexit_code={code}\n"))?;
        if args.bisect {
            output::complain(&error);
            return Ok(code);
        }
        Err(error)
    })
}

fn write_verdict(args: &GateArgs, text: &str) -> anyhow::Result<()> {
    let Some(path) = &args.verdict_file else { return Ok(()) };
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn gate(args: &GateArgs) -> anyhow::Result<u8> {
    let mut report = match judged(args) {
        Ok(report) => report,
        Err(error) => refused(args, error)?,
    };
    let code = exit_code(args, report.verdict);
    add_history(args, &mut report)?;
    let text = match args.format {
        GateFormat::Text => {
            let style = if args.output.is_some() { Style::default() } else { output::style() };
            reports::gate::text(&report, &style)
        }
        GateFormat::Json => reports::gate::json(&report),
        GateFormat::Junit => reports::gate::junit(&report),
        GateFormat::Ktap => reports::gate::ktap(&report),
        GateFormat::Markdown => reports::gate::markdown(&report),
    };
    match &args.output {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => output::print(&text)?,
    }
    write_verdict(args, &reports::gate::verdict_file(&report, code))?;
    Ok(code)
}

/// A gate that cannot be run is a report too, unless the command line is wrong.
fn refused(args: &GateArgs, error: anyhow::Error) -> anyhow::Result<GateReport> {
    let error = error.downcast::<GateError>()?;
    eprintln!("rareplay: {error}");
    let candidate = args.candidate.as_deref().unwrap_or(&args.baseline);
    Ok(GateReport::refused(&args.baseline, candidate, error.verdict(), error.to_string()))
}

fn exit_code(args: &GateArgs, verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass | Verdict::Changed | Verdict::Improved => exit::OK,
        Verdict::Regressed if args.bisect => 1,
        _ if args.bisect => BISECT_SKIP,
        Verdict::Regressed => exit::DIFFERS,
        Verdict::Inconclusive => exit::INCONCLUSIVE,
        Verdict::BaselineMissing => exit::BASELINE_MISSING,
        Verdict::NotComparable => exit::NOT_COMPARABLE,
        Verdict::DataLoss => exit::DATA_LOSS,
        Verdict::BadInput => exit::BAD_INPUT,
    }
}

/// What a side's argument names.
enum Spec {
    Policy(Arc<dyn Policy>),
    /// A baseline, or saved results.
    Saved(PathBuf),
    /// A capture, or a folder of them.
    Recorded(PathBuf),
    /// A file that is not there.
    Missing,
}

impl Spec {
    /// Names of policies come first: a file of such a name can be written as `./NAME`.
    fn of(text: &str, tree: &TreeArgs) -> anyhow::Result<Self> {
        let unknown = match sources::policies(&[text.to_owned()], tree) {
            Ok(mut policies) => return Ok(Self::Policy(policies.remove(0))),
            Err(error) if text.starts_with(PREFIX) => return Err(error),
            Err(error) => error,
        };
        let path = PathBuf::from(text);
        if path.exists() {
            let is_saved = is_saved(&path);
            return Ok(if is_saved { Self::Saved(path) } else { Self::Recorded(path) });
        }
        if is_saved_name(&path) || text.contains('/') {
            return Ok(Self::Missing);
        }
        Err(unknown)
    }

    fn policy(&self) -> Option<Arc<dyn Policy>> {
        match self {
            Self::Policy(policy) => Some(policy.clone()),
            _ => None,
        }
    }
}

/// Whether a file is a baseline or saved results, by its name.
fn is_saved_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml" || extension == "json")
}

/// Whether there is a baseline, or saved results of one kind or another.
pub(crate) fn is_saved(path: &Path) -> bool {
    is_saved_name(path) || is_results(path)
}

/// Reads a saved side.
pub(crate) fn saved_side(path: &Path, by: Option<By>) -> anyhow::Result<Side> {
    if !is_results(path) {
        return Ok(read_saved_side(path)?);
    }
    let mut sides = fleet::sides(&[path.to_owned()], by)?;
    if sides.len() > 1 {
        let policies = sides.into_iter().map(|side| side.name).collect();
        return Err(GateError::SeveralPolicies { path: path.to_owned(), policies }.into());
    }
    let given = path.display().to_string();
    Ok(sides.pop().ok_or(GateError::NoSource { given })?)
}

const ACCEPT_NEEDS_FILE: &str = "--accept writes --baseline, which has to be a .toml file then";

fn usage<T>(text: &str) -> anyhow::Result<T> {
    Err(UsageError(text.to_owned()).into())
}

fn judged(args: &GateArgs) -> anyhow::Result<GateReport> {
    let budgets = budgets(args.budget.as_deref())?;
    if fleet::are_results(&args.sources) {
        return of_results(args, &budgets);
    }
    let mut sides = std::iter::once(&args.baseline).chain(&args.candidate);
    if !sides.any(|side| is_results(Path::new(side))) {
        fleet::only_for_results(&[("--by", args.by.is_some())])?;
    }
    let options = options(args)?;
    let baseline = Spec::of(&args.baseline, &args.tree)?;
    if args.accept && matches!(baseline, Spec::Policy(_) | Spec::Recorded(_)) {
        return usage(ACCEPT_NEEDS_FILE);
    }
    let candidate = args.candidate.as_deref();
    let candidate = candidate.map(|text| Spec::of(text, &args.tree)).transpose()?;
    let specs: Vec<Spec> = std::iter::once(baseline).chain(candidate).collect();
    let corpus = corpus(args, &specs)?;
    if matches!(specs[0], Spec::Missing) && !args.accept {
        return Ok(baseline_missing(args));
    }
    let policies: Vec<Arc<dyn Policy>> = specs.iter().filter_map(Spec::policy).collect();
    let progress = Progress::new("judging", 1);
    let mut sides = Sides::new(&policies, &corpus, &options, args.by).load(specs)?;
    drop(progress);
    let Some(baseline) = sides.remove(0) else {
        return match sides.pop().flatten() {
            Some(candidate) if args.accept => accept(args, &candidate, &candidate, &budgets),
            _ => Ok(baseline_missing(args)),
        };
    };
    if args.self_test {
        return Ok(self_test(&baseline, &budgets));
    }
    let Some(candidate) = sides.pop().flatten() else {
        anyhow::bail!("no candidate at {}", args.candidate.as_deref().unwrap_or_default());
    };
    if args.accept {
        return accept(args, &baseline, &candidate, &budgets);
    }
    let mut report = judge(&baseline, &candidate, &budgets);
    if let [from, to] = &policies[..] {
        explain_regressions(&mut report, &corpus, (&**from, &**to), &options);
    }
    Ok(report)
}

/// Judges results of a list: a side is one of their policies, or saved.
fn of_results(args: &GateArgs, budgets: &Budgets) -> anyhow::Result<GateReport> {
    if args.accept && !is_saved_name(Path::new(&args.baseline)) {
        return usage(ACCEPT_NEEDS_FILE);
    }
    let sides = fleet::sides(&args.sources, args.by)?;
    let side = |text: &String| {
        let known = sides.iter().find(|side| side.name == *text);
        let path = Path::new(text);
        match known {
            Some(side) => Ok(Some(side.clone())),
            None if is_saved_name(path) && !path.exists() => Ok(None),
            None if is_saved(path) => saved_side(path, args.by).map(Some),
            None => fleet::side_of(&sides, text).cloned().map(Some),
        }
    };
    let baseline = side(&args.baseline)?;
    let candidate = args.candidate.as_ref().map(side).transpose()?.flatten();
    match (baseline, candidate) {
        (Some(baseline), _) if args.self_test => Ok(self_test(&baseline, budgets)),
        (baseline, Some(candidate)) if args.accept => {
            let from = baseline.as_ref().unwrap_or(&candidate);
            accept(args, from, &candidate, budgets)
        }
        (None, _) => Ok(baseline_missing(args)),
        (Some(baseline), Some(candidate)) => Ok(judge(&baseline, &candidate, budgets)),
        (Some(_), None) => {
            anyhow::bail!("no candidate at {}", args.candidate.as_deref().unwrap_or_default())
        }
    }
}

fn baseline_missing(args: &GateArgs) -> GateReport {
    let reason = format!("no baseline at {}; --accept makes one", args.baseline);
    let candidate = args.candidate.as_deref().unwrap_or(&args.baseline);
    GateReport::refused(&args.baseline, candidate, Verdict::BaselineMissing, reason)
}

/// Writes the candidate as the baseline if every source gave figures.
fn accept(
    args: &GateArgs,
    baseline: &Side,
    candidate: &Side,
    budgets: &Budgets,
) -> anyhow::Result<GateReport> {
    let mut report = judge(baseline, candidate, budgets);
    let refused = candidate.entries.values().filter_map(|entry| entry.as_ref().err());
    if let Some(worst) = refused.map(|refusal| refusal.verdict).max() {
        report.verdict = worst;
        report.notes.push("nothing was accepted: a source gave no figures".to_owned());
        return Ok(report);
    }
    write_baseline(candidate, Path::new(&args.baseline))?;
    report.verdict = Verdict::Pass;
    report.accepted = true;
    Ok(report)
}

/// Sources are for policies; recorded runs bring their own.
fn corpus(args: &GateArgs, specs: &[Spec]) -> anyhow::Result<Vec<SourceFile>> {
    let has_policy = specs.iter().any(|spec| spec.policy().is_some());
    let has_recorded = specs.iter().any(|spec| matches!(spec, Spec::Recorded(_)));
    if has_policy && has_recorded {
        return usage("a policy and recorded runs do not compare: give two of the same kind");
    }
    match (args.sources.is_empty(), has_policy) {
        (true, true) => usage("a policy needs at least one SOURCE to be replayed on"),
        (true, false) => Ok(Vec::new()),
        (false, false) => usage("SOURCE is for policies: neither side is one"),
        (false, true) => Ok(expand(&args.sources)?),
    }
}

/// Sides, with the replays of both policies made in one pass over the corpus.
struct Sides<'a> {
    replayed: std::vec::IntoIter<Side>,
    names: Vec<String>,
    options: &'a MeasureOptions,
    /// What saved results are put together by.
    by: Option<By>,
}

impl<'a> Sides<'a> {
    fn new(
        policies: &[Arc<dyn Policy>],
        corpus: &[SourceFile],
        options: &'a MeasureOptions,
        by: Option<By>,
    ) -> Self {
        let replayed = measure(corpus, policies, options).into_iter();
        let names = corpus.iter().map(|source| source.key.clone()).collect();
        Self { replayed, names, options, by }
    }

    /// The sides in the order of `specs`; `None` for files that are not there.
    fn load(mut self, specs: Vec<Spec>) -> anyhow::Result<Vec<Option<Side>>> {
        specs.into_iter().map(|spec| self.one(spec)).collect()
    }

    fn one(&mut self, spec: Spec) -> anyhow::Result<Option<Side>> {
        Ok(match spec {
            Spec::Policy(_) => self.replayed.next(),
            Spec::Recorded(path) => Some(recorded_side(&path, self.options)?),
            Spec::Missing => None,
            Spec::Saved(path) => {
                let mut side = saved_side(&path, self.by)?;
                side.rename_to(&self.names);
                Some(side)
            }
        })
    }
}

fn options(args: &GateArgs) -> anyhow::Result<MeasureOptions> {
    let load = LoadOptions {
        set: args.set.clone(),
        allow_inferred: args.allow_inferred,
        ..LoadOptions::default()
    };
    let model = match &args.device {
        Some(device) => Model::load(device)?,
        None => Model::default(),
    };
    Ok(MeasureOptions { load, allow_loss: args.allow_loss, model })
}

pub(crate) fn budgets(path: Option<&Path>) -> anyhow::Result<Budgets> {
    let Some(path) = path else { return Ok(Budgets::default()) };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Budgets::parse(&text, today()?).with_context(|| path.display().to_string())
}

/// The day budgets are in force on: `SOURCE_DATE_EPOCH` where it is set, for results that repeat.
fn today() -> anyhow::Result<Date> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().context("SOURCE_DATE_EPOCH")?,
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().cast_signed(),
    };
    let date = DateTime::from_timestamp(seconds, 0).context("SOURCE_DATE_EPOCH")?.date_naive();
    let year = u16::try_from(date.year()).context("SOURCE_DATE_EPOCH")?;
    Ok(Date { year, month: date.month() as u8, day: date.day() as u8 })
}

fn add_history(args: &GateArgs, report: &mut GateReport) -> anyhow::Result<()> {
    let Some(path) = &args.history else { return Ok(()) };
    if report.self_test || report.checks.is_empty() {
        return Ok(());
    }
    let mut history = History::read(path)?;
    let label = args.history_label.as_deref().unwrap_or(&report.candidate);
    history.add(label, &report.checks)?;
    history.write(path)?;
    report.change_points = history.change_points(args.history_change);
    Ok(())
}
