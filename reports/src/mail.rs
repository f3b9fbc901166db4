//! Plain text of 72 columns that pastes into a mail or a changelog.

use analysis::inspect::InspectReport;
use analysis::result::{PolicyResult, ReplayReport};
use analysis::verify::CaptureVerify;

use crate::figures::{Row, sections};
use crate::grid::Grid;
use crate::number::{Unit, signed_percent};
use crate::text::Style;
use crate::words::{self, Outcome};

/// Columns of a mail.
const WIDTH: usize = 72;

/// Settings that kernel changelogs name.
const SETTINGS_NAMED: [&str; 2] = ["max_sectors_kb", "read_ahead_kb"];

/// A source under one or more policies: the change in words, the table, where it comes from.
pub fn replay(report: &ReplayReport) -> String {
    let mut out = String::new();
    if let [before, after] = &report.results[..] {
        out += &fill(&format!("Before is {}, after is {}.", before.policy, after.policy), "", "");
        out.push('\n');
        out += &change(report, before, after);
    } else {
        out += &fill(&format!("{}:", subject(report)), "", "");
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

/// One paragraph for each source that was replayed under two policies.
pub fn changelog(reports: &[ReplayReport]) -> String {
    let paragraphs = reports.iter().filter_map(|report| match &report.results[..] {
        [before, after] => Some(change(report, before, after)),
        _ => None,
    });
    paragraphs.collect::<Vec<_>>().join("\n")
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

/// A capture.
pub fn inspect(report: &InspectReport) -> String {
    crate::text::inspect(report, &Style { colour: false, width: WIDTH })
}

fn fill(text: &str, first: &str, indent: &str) -> String {
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// `max_sectors_kb 512, read_ahead_kb 128, seq1m_after4k_ms512`.
fn subject(report: &ReplayReport) -> String {
    let named = SETTINGS_NAMED.iter().filter_map(|key| {
        let setting = report.settings.iter().find(|setting| setting.key == *key)?;
        Some(format!("{} {}", setting.key, setting.value))
    });
    let mut parts: Vec<String> = named.collect();
    parts.push(words::stem(&report.source).to_owned());
    parts.join(", ")
}

/// Seconds, as changelogs give them, unless that would show nothing.
fn seconds(ns: u64) -> String {
    if ns < 10_000_000 { Unit::Nanoseconds.show(ns) } else { format!("{:.3} s", ns as f64 / 1e9) }
}

/// What a change does to one source, in the words of a changelog.
fn change(report: &ReplayReport, before: &PolicyResult, after: &PolicyResult) -> String {
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
    let text = format!("{}: {reads}. {}.", subject(report), folios(before, after));
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
    let settings = report.settings.iter().map(words::setting).collect::<Vec<_>>().join(", ");
    out += &fill(&format!("Settings: {settings}."), "", "");
    out += &fill(&format!("Time is modelled: {}.", words::device(&report.device)), "", "");
    out += &match &report.verify {
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
    };
    if let Some(errors) = report.verify.as_ref().and_then(words::time_errors) {
        out += &fill(&format!("{errors}."), "", "");
    }
    for (kind, loss) in &report.losses.0 {
        let text = format!("Loss: {}: {} (first: {})", kind.describe(), loss.count, loss.first);
        out += &fill(&text, "", "");
    }
    out
}
