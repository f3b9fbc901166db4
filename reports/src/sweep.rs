//! The table of a sweep, as every format shows it.

use analysis::sweep::{Advice, SweepFigures, SweepPoint, SweepReport};

use crate::number::{Scale, Unit, count, percent, percent_change, signed_percent};

/// A column: its head, its cells, and whether a mail has room for it.
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) cells: Vec<String>,
    pub(crate) in_mail: bool,
}

/// The figures of one policy, one row per point.
pub(crate) fn columns(report: &SweepReport, policy: usize) -> Vec<Column> {
    let figures: Vec<&SweepFigures> =
        report.points.iter().map(|point| &point.results[policy]).collect();
    let column = |head: &str, in_mail, cell: &dyn Fn(&SweepFigures) -> String| Column {
        head: head.to_owned(),
        cells: figures.iter().map(|figures| cell(figures)).collect(),
        in_mail,
    };
    let scale = |unit: Unit, value: fn(&SweepFigures) -> u64| -> Scale {
        unit.scale(figures.iter().map(|figures| value(figures)).max().unwrap_or(0))
    };
    let elapsed = scale(Unit::Nanoseconds, |figures| figures.elapsed_ns);
    let wait = scale(Unit::Nanoseconds, |figures| figures.read_wait_ns.p99);
    let bytes = scale(Unit::Bytes, |figures| figures.device_reads.bytes);
    let mut columns: Vec<Column> = (0..report.axes.len()).map(|axis| swept(report, axis)).collect();
    columns.extend([
        column("elapsed", true, &|figures| elapsed.show(figures.elapsed_ns)),
        to_best(report, policy),
        column("wait p99", false, &|figures| wait.show(figures.read_wait_ns.p99)),
        column("reads", true, &|figures| count(figures.device_reads.count)),
        column("read", true, &|figures| bytes.show(figures.device_reads.bytes)),
        column("unused", true, &|figures| percent(figures.waste())),
        column("busy", false, &|figures| percent(figures.device_busy)),
    ]);
    columns
}

fn swept(report: &SweepReport, axis: usize) -> Column {
    let cells = report.points.iter().map(|point| point.values[axis].clone()).collect();
    Column { head: report.axes[axis].key.clone(), cells, in_mail: true }
}

/// How much longer than the best it takes, or whatever the goal is.
fn to_best(report: &SweepReport, policy: usize) -> Column {
    let best = |point: &SweepPoint| {
        let advice = advice_of(report, policy).find(|advice| is_for(report, advice, point))?;
        Some(report.goal.of(&report.points[advice.best].results[policy]))
    };
    let cell = |point: &SweepPoint| {
        let change = percent_change(best(point)?, report.goal.of(&point.results[policy]))?;
        Some(if change == 0.0 { "best".to_owned() } else { signed_percent(change) })
    };
    let cells = report.points.iter().map(|point| cell(point).unwrap_or_default()).collect();
    Column { head: "to best".to_owned(), cells, in_mail: true }
}

/// The answers for a policy: one, or one per device or size of memory.
pub(crate) fn advice_of(report: &SweepReport, policy: usize) -> impl Iterator<Item = &Advice> {
    report.advice.iter().filter(move |advice| advice.policy == report.policies[policy])
}

/// Whether an answer is about a point.
fn is_for(report: &SweepReport, advice: &Advice, point: &SweepPoint) -> bool {
    advice.given.as_ref().is_none_or(|given| {
        let values = report.axes.iter().zip(&point.values);
        values.into_iter().any(|(axis, value)| axis.key == given.key && *value == given.value)
    })
}

/// What is special about a point: `recommended, knee, as it came`.
pub(crate) fn remarks(report: &SweepReport, policy: usize, place: usize) -> String {
    let mut remarks = Vec::new();
    let mut remark = |is_so, text| {
        if is_so && !remarks.contains(&text) {
            remarks.push(text);
        }
    };
    for advice in advice_of(report, policy) {
        remark(advice.point == Some(place), "recommended");
        remark(advice.knee == Some(place), "knee");
    }
    remark(report.points[place].is_current, "as it came");
    remarks.join(", ")
}
