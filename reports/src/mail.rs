//! Plain text of 72 columns that pastes into a mail or a changelog.

use analysis::explain::Explanation;
use analysis::inspect::InspectReport;
use analysis::result::{PolicyResult, ReplayReport};
use analysis::sweep::SweepReport;
use analysis::verify::CaptureVerify;
use traces::capture::Losses;

use crate::causes;
use crate::figures::{Row, sections};
use crate::grid::Grid;
use crate::number::{Unit, counted, signed_percent};
use crate::sweep::{Column, advice_of, columns, remarks};
use crate::text::Style;
use crate::words::{self, Outcome};

/// Columns of a mail.
const WIDTH: usize = 72;

/// Settings that kernel changelogs name.
const SETTINGS_NAMED: [&str; 2] = ["max_sectors_kb", "read_ahead_kb"];

/// Sources under the same policies: what changes for each in words, and for a single one the table.
pub fn replay(reports: &[ReplayReport]) -> String {
    match reports {
        [report] => one(report),
        _ => changelog(reports),
    }
}

/// The change in words, the table, where it comes from.
fn one(report: &ReplayReport) -> String {
    let mut out = String::new();
    if let [before, after] = &report.results[..] {
        out += &sides(before, after);
        out.push('\n');
        out += &change(report, &SETTINGS_NAMED, before, after);
    } else {
        out += &fill(&format!("{}:", subject(report, &SETTINGS_NAMED)), "", "");
        for (column, result) in report.results.iter().enumerate() {
            out += &fill(&format!("{}: {}", column + 1, result.policy), "  ", "     ");
        }
    }
    out.push('\n');
    out += &table(report);
    out.push('\n');
    out += &origin(report);
    out
}

/// A paragraph per source, as changelogs list what was tested, and below what all of them share.
/// Settings that are everywhere the same are named once.
fn changelog(reports: &[ReplayReport]) -> String {
    let mut out = String::new();
    if let Some([before, after]) = reports.first().map(|report| &report.results[..]) {
        out += &sides(before, after);
    }
    let value = |report: &ReplayReport, key: &str| {
        let setting = report.settings.iter().find(|setting| setting.key == key);
        setting.map(|setting| setting.value.clone())
    };
    let is_shared = |key: &&str| {
        let first = reports.first().and_then(|report| value(report, key));
        reports.iter().all(|report| value(report, key) == first)
    };
    let (shared, own): (Vec<&str>, Vec<&str>) = SETTINGS_NAMED.into_iter().partition(is_shared);
    if let (Some(report), false) = (reports.first(), shared.is_empty()) {
        out += &fill(&format!("All with {}.", named(report, &shared).join(", ")), "", "");
    }
    for report in reports {
        out.push('\n');
        match &report.results[..] {
            [before, after] => out += &change(report, &own, before, after),
            results => {
                let counts = results.iter().map(|result| {
                    let (reads, folios) = (result.device_reads.count, result.folios.total);
                    format!("{reads} device reads and {folios} folios under {}", result.policy)
                });
                let counts = counts.collect::<Vec<_>>().join(", ");
                out += &fill(&format!("{}: {counts}.", subject(report, &own)), "- ", "  ");
            }
        }
    }
    out.push('\n');
    out += &origins(reports);
    out
}

/// How the figures of several sources came about and how far they can be trusted.
fn origins(reports: &[ReplayReport]) -> String {
    let names: Vec<&str> = reports.iter().map(|report| words::file_name(&report.source)).collect();
    let mut out = fill(&format!("Replayed from {}.", names.join(", ")), "", "");
    if let Some(report) = reports.first() {
        out += &fill(&format!("Time is modelled: {}.", words::device(&report.device)), "", "");
    }
    let verified: Vec<&CaptureVerify> =
        reports.iter().filter_map(|report| report.verify.as_ref()).collect();
    let (exact, others): (Vec<_>, Vec<_>) = verified.into_iter().partition(|verify| verify.exact);
    if !exact.is_empty() {
        let text = format!(
            "Under its own kernel's policy the replay gives every recorded folio and device read of \
             {}.",
            counted(exact.len() as u64, "capture", "captures")
        );
        out += &fill(&text, "", "");
    }
    out.extend(others.into_iter().map(|verify| checked(Some(verify))));
    out.extend(reports.iter().map(|report| losses(&report.losses)));
    out
}

fn sides(before: &PolicyResult, after: &PolicyResult) -> String {
    fill(&format!("Before is {}, after is {}.", before.policy, after.policy), "", "")
}

/// Captures held against a replay, a paragraph each.
pub fn verify(captures: &[CaptureVerify]) -> String {
    let mut out = String::new();
    for verify in captures {
        let name = words::file_name(&verify.source);
        out += &fill(&format!("{name}: {}", words::verify(verify)), "- ", "  ");
        let difference = verify.first_difference.as_ref().map(words::difference);
        let others = [words::unrecorded_reads(verify), words::time_errors(verify)];
        for detail in difference.into_iter().chain(others.into_iter().flatten()) {
            out += &fill(&detail, "  ", "  ");
        }
    }
    out
}

/// Why two policies differ on a source: `before` is the first of them.
pub fn explain(explanation: &Explanation) -> String {
    let [before, after] = &explanation.sides;
    let mut out = fill(&format!("Before is {}, after is {}.", before.policy, after.policy), "", "");
    out.push('\n');
    match &explanation.divergence {
        None => out += &fill("The policies decide the same everywhere.", "", ""),
        Some(divergence) => {
            let text = format!("They part at access {}.", causes::parts_at(divergence));
            out += &fill(&text, "", "");
            out += &fill(&format!("before: {}", divergence.state_before), "- ", "  ");
            for decided in causes::decisions(explanation, divergence) {
                out += &fill(&decided, "- ", "  ");
            }
        }
    }
    let mut grid = Grid::new("lrr");
    grid.push([&causes::title(explanation), "before", "after"].map(Into::into).into());
    for row in causes::rows(explanation) {
        let [a, b] = row.pages.map(|pages| pages.to_string().into());
        grid.push(vec![format!("  {}", row.label).into(), a, b]);
    }
    out.push('\n');
    out += &grid.render(false);
    out.push('\n');
    out.extend(explanation.sides.iter().map(|side| fill(&causes::windows(side), "- ", "  ")));
    out
}

/// A source over a range of settings.
pub fn sweep(report: &SweepReport) -> String {
    let mut out = String::new();
    for policy in 0..report.policies.len() {
        let (name, source) = (&report.policies[policy], words::stem(&report.source));
        out += &fill(&format!("{source} under {name}:"), "", "");
        out.push('\n');
        let columns = columns(report, policy);
        let columns: Vec<&Column> = columns.iter().filter(|column| column.in_mail).collect();
        let mut grid = Grid::new(&"r".repeat(columns.len() + 1));
        grid.push(columns.iter().map(|c| c.head.as_str().into()).chain(["".into()]).collect());
        for place in 0..report.points.len() {
            let mark = remarks(report, policy, place).contains("recommended");
            let mark = if mark { "<" } else { "" };
            let cells = columns.iter().map(|c| c.cells[place].as_str().into());
            grid.push(cells.chain([mark.into()]).collect());
        }
        out += &grid.render(false);
        out.push('\n');
        for advice in advice_of(report, policy) {
            out += &fill(&advice.reason.join(" "), "", "");
            out.extend(advice.doubts.iter().map(|doubt| fill(&doubt.text, "Note: ", "  ")));
            out.push('\n');
        }
    }
    out.extend(report.doubts.iter().map(|doubt| fill(&doubt.text, "Note: ", "  ")));
    out += &fill(&format!("Settings: {}.", words::settings(&report.settings)), "", "");
    out + &checked(report.verify.as_ref())
}

/// A capture.
pub fn inspect(report: &InspectReport) -> String {
    crate::text::inspect(report, &Style { colour: false, width: WIDTH })
}

pub(crate) fn fill(text: &str, first: &str, indent: &str) -> String {
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// `max_sectors_kb 512, read_ahead_kb 128, one 4 KiB read at offset 0, then 1 MiB reads to the end`.
fn subject(report: &ReplayReport, settings: &[&str]) -> String {
    let mut parts = named(report, settings);
    parts.push(words::about(report));
    parts.join(", ")
}

/// `max_sectors_kb 512`, for each of some settings.
fn named(report: &ReplayReport, keys: &[&str]) -> Vec<String> {
    let named = keys.iter().filter_map(|key| {
        let setting = report.settings.iter().find(|setting| setting.key == *key)?;
        Some(format!("{} {}", setting.key, setting.value))
    });
    named.collect()
}

/// Seconds, as changelogs give them, unless that would show nothing.
fn seconds(ns: u64) -> String {
    if ns < 10_000_000 { Unit::Nanoseconds.show(ns) } else { format!("{:.3} s", ns as f64 / 1e9) }
}

/// What a change does to one source, in the words of a changelog.
fn change(
    report: &ReplayReport,
    settings: &[&str],
    before: &PolicyResult,
    after: &PolicyResult,
) -> String {
    let reads = if before.device_reads == after.device_reads {
        format!("{} device reads before and after", before.device_reads.count)
    } else {
        format!(
            "{} and {} device reads before, {} and {} after (time {})",
            seconds(before.elapsed_ns),
            before.device_reads.count,
            seconds(after.elapsed_ns),
            after.device_reads.count,
            words::time_note(report.verify.as_ref()),
        )
    };
    let text = format!("{}: {reads}. {}.", subject(report, settings), folios(before, after));
    fill(&text, "- ", "  ")
}

/// Folios before and after, with the order that holds most of the pages after.
fn folios(before: &PolicyResult, after: &PolicyResult) -> String {
    if before.folios == after.folios {
        return format!("Both have the same {} folios", before.folios.total);
    }
    let verb = match after.folios.total.cmp(&before.folios.total) {
        std::cmp::Ordering::Less => "drop",
        std::cmp::Ordering::Equal => "stay, but change their orders,",
        std::cmp::Ordering::Greater => "rise",
    };
    let pages = |(order, count): (usize, &u64)| (count << order, order);
    let orders = after.folios.by_order.iter().enumerate().map(pages);
    let main = orders.max().map_or(0, |(_, order)| order);
    let of_main = |result: &PolicyResult| match result.folios.of(main) {
        0 => format!("{} (none of order {main})", result.folios.total),
        count => format!("{} ({count} of order {main})", result.folios.total),
    };
    format!("Folios {verb} from {} to {}", of_main(before), of_main(after))
}

fn table(report: &ReplayReport) -> String {
    let with_change = report.results.len() == 2;
    let columns = report.results.len() + usize::from(with_change);
    let mut grid = Grid::new(&format!("l{}", "r".repeat(columns)));
    let mut heads = vec![String::new()];
    if with_change {
        heads.extend(["before", "after", "change"].map(str::to_owned));
    } else {
        heads.extend((1..=columns).map(|column| column.to_string()));
    }
    grid.push(heads.into_iter().map(Into::into).collect());
    for section in sections(report) {
        grid.push_across(section.title.as_str());
        for row in &section.rows {
            grid.push(cells(row).into_iter().map(Into::into).collect());
        }
    }
    grid.render(false)
}

fn cells(row: &Row) -> Vec<String> {
    let scale = row.scale();
    let mut cells = vec![format!("  {}", row.label)];
    // Counts stay plain digits: changelogs are searched for them.
    cells.extend(row.values.iter().map(|value| match row.unit {
        Unit::Count => value.to_string(),
        Unit::Bytes | Unit::Nanoseconds => scale.show(*value),
    }));
    if let Some(change) = row.change() {
        let percent = change.percent.filter(|_| change.before != change.after);
        cells.push(percent.map(signed_percent).unwrap_or_default());
    }
    cells
}

/// How the figures came about and how far they can be trusted.
fn origin(report: &ReplayReport) -> String {
    let streams = words::streams(report.fidelity, &report.streams);
    let mut out = fill(&format!("Replayed from {}, {streams}.", report.source), "", "");
    let settings = words::settings(&report.settings);
    out += &fill(&format!("Settings: {settings}."), "", "");
    out += &fill(&format!("Time is modelled: {}.", words::device(&report.device)), "", "");
    out += &checked(report.verify.as_ref());
    if let Some(errors) = report.verify.as_ref().and_then(words::time_errors) {
        out += &fill(&format!("{errors}."), "", "");
    }
    out + &losses(&report.losses)
}

fn losses(losses: &Losses) -> String {
    let lines = losses.0.iter().map(|(kind, loss)| {
        let text = format!("Loss: {}: {} (first: {})", kind.describe(), loss.count, loss.first);
        fill(&text, "", "")
    });
    lines.collect()
}

/// How far the figures can be trusted.
fn checked(verify: Option<&CaptureVerify>) -> String {
    match verify {
        Some(verify) if Outcome::of(verify) == Outcome::Exact => fill(
            &format!(
                "Under {} the replay gives what was recorded, in order: {} folios and {} \
                 device reads.",
                verify.policy, verify.folios.recorded, verify.device_reads.recorded
            ),
            "",
            "",
        ),
        Some(verify) => fill(&words::verify(verify), "", ""),
        None => fill(&format!("{}.", words::NOT_VERIFIED), "", ""),
    }
}
