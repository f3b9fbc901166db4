//! Which value to take, and why.
//!
//! For each policy the points are put in order of size: by the first axis, then
//! by the second. The value is the smallest one whose figure is within the
//! tolerance of the best, since what readahead reads in vain costs memory and
//! bandwidth that a replay of one program does not show. Beside another setting,
//! each device and each size of memory has its own answer, as nobody chooses
//! these by the readahead they take.

use serde::Serialize;

use super::{Axis, Doubt, DoubtKind, SweepFigures, SweepPoint, SweepReport};

/// Busy share above which a device has next to no time to spare.
const BUSY_SHARE: f64 = 0.95;
/// Share of the time below which waits do not matter.
const WAIT_SHARE: f64 = 0.02;
/// Factor from which a difference in device reads or bytes is worth words.
const NOTABLE: f64 = 1.25;
/// Gain of a step, as a share, below which the curve counts as level.
const LEVEL_GAIN: f64 = 0.1;
/// Share of unused pages from which waste is worth a sentence.
const WASTE_SHARE: f64 = 0.01;

/// What a value is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Elapsed time.
    #[default]
    Elapsed,
    /// The 99th percentile of the waits of reads.
    Wait,
    /// Device reads.
    Reads,
}

impl Goal {
    /// The figure that is to be small.
    pub fn of(self, figures: &SweepFigures) -> u64 {
        match self {
            Self::Elapsed => figures.elapsed_ns,
            Self::Wait => figures.read_wait_ns.p99,
            Self::Reads => figures.device_reads.count,
        }
    }

    /// The figure in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Elapsed => "elapsed time",
            Self::Wait => "99th percentile of the read wait",
            Self::Reads => "number of device reads",
        }
    }
}

/// What the curve looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Every value is as good as the best.
    Flat,
    /// Larger values are better, up to some point or to the end.
    MoreHelps,
    /// The smallest value is as good as the best, and larger ones are worse.
    MoreHurts,
    /// Both smaller and larger values are worse.
    Between,
}

/// A value of an axis that is not chosen but given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Given {
    /// `device` or `memory`.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A value for one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The policy.
    pub policy: String,
    /// The device or the memory it is for, where these are swept beside another setting.
    pub given: Option<Given>,
    /// Place of the recommended point among the points; `None` where values have no size.
    pub point: Option<usize>,
    /// Place of the point with the best figure, the smallest of equal ones.
    pub best: usize,
    /// Place of the smallest point after which no step gains a tenth, on one axis.
    pub knee: Option<usize>,
    /// What the curve looks like.
    pub shape: Shape,
    /// Why, in sentences.
    pub reason: Vec<String>,
    /// What keeps the capture from telling.
    pub doubts: Vec<Doubt>,
}

/// One answer per policy, and per value of an axis that is given.
pub(super) fn advise(report: &SweepReport) -> Vec<Advice> {
    let axis = given_axis(report);
    let places = axis.map_or(0..1, |axis| 0..report.axes[axis].values.len());
    let given: Vec<Option<(usize, usize)>> =
        places.map(|place| axis.map(|axis| (axis, place))).collect();
    let one = |policy| given.iter().map(move |given| Curve::new(report, policy, *given).advice());
    (0..report.policies.len()).flat_map(one).collect()
}

/// The axis whose values nobody chooses: the device, or else the memory, beside another setting.
fn given_axis(report: &SweepReport) -> Option<usize> {
    let is_pair = report.axes.len() == 2;
    let device = report.axes.iter().position(|axis| !axis.is_sized());
    let given = device.or_else(|| report.axes.iter().position(|axis| axis.key == "memory"));
    given.filter(|_| is_pair)
}

/// The points of one answer, smallest first.
struct Curve<'a> {
    report: &'a SweepReport,
    policy: usize,
    /// The axis that is given, and the place of the value on it.
    given: Option<(usize, usize)>,
    points: Vec<usize>,
}

impl<'a> Curve<'a> {
    fn new(report: &'a SweepReport, policy: usize, given: Option<(usize, usize)>) -> Self {
        let belongs =
            |point: &SweepPoint| given.is_none_or(|(axis, place)| point.at[axis] == place);
        // Points come in the order of their places on the axes, which is that of size.
        let points = report.points.iter().enumerate();
        let points = points.filter(|(_, point)| belongs(point)).map(|(place, _)| place).collect();
        Self { report, policy, given, points }
    }

    fn figures(&self, place: usize) -> &'a SweepFigures {
        &self.report.points[place].results[self.policy]
    }

    fn goal(&self, place: usize) -> u64 {
        self.report.goal.of(self.figures(place))
    }

    /// The values of a point, without what is given.
    fn name(&self, place: usize) -> String {
        let values = self.report.axes.iter().zip(&self.report.points[place].values).enumerate();
        let values = values.filter(|(axis, _)| self.given.is_none_or(|(given, _)| given != *axis));
        let values: Vec<String> =
            values.map(|(_, (axis, value))| format!("{} {value}", axis.key)).collect();
        values.join(", ")
    }

    fn given(&self) -> Option<Given> {
        let (axis, place) = self.given?;
        let Axis { key, values } = &self.report.axes[axis];
        Some(Given { key: key.clone(), value: values[place].text.clone() })
    }

    fn advice(&self) -> Advice {
        let best = *self.points.iter().min_by_key(|place| self.goal(**place)).unwrap_or(&0);
        let is_good = |place: &&usize| self.is_good(self.goal(**place), best);
        let pick = *self.points.iter().find(is_good).unwrap_or(&best);
        let last_good = *self.points.iter().rfind(is_good).unwrap_or(&best);
        let (first, last) = (self.points[0], *self.points.last().unwrap_or(&best));
        let shape = match (pick == first, last_good == last) {
            (true, true) if self.points.iter().all(|place| is_good(&place)) => Shape::Flat,
            (false, true) => Shape::MoreHelps,
            (true, false) => Shape::MoreHurts,
            _ => Shape::Between,
        };
        let is_sized = self.given.is_some() || self.report.axes.iter().all(Axis::is_sized);
        let reason = if is_sized { self.reason(pick, best, shape) } else { self.compare(best) };
        Advice {
            policy: self.report.policies[self.policy].clone(),
            given: self.given(),
            point: is_sized.then_some(pick),
            best,
            knee: self.knee(best).filter(|_| is_sized && shape != Shape::Flat),
            shape,
            reason,
            doubts: self.doubts(pick, shape),
        }
    }

    fn is_good(&self, figure: u64, best: usize) -> bool {
        figure as f64 <= self.goal(best) as f64 * (1.0 + self.report.tolerance_percent / 100.0)
    }

    fn reason(&self, pick: usize, best: usize, shape: Shape) -> Vec<String> {
        let what = self.report.goal.describe();
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        let given = self.given().map(|given| match given.key.as_str() {
            super::DEVICE => format!(" on {}", given.value),
            _ => format!(" with {} {}", given.key, given.value),
        });
        let here = format!("{}{}", self.name(pick), given.unwrap_or_default());
        let tolerance = self.report.tolerance_percent;
        let mut reason = vec![match shape {
            Shape::Flat => format!(
                "{here}, since the {what} is the same from {} to {}, within {tolerance} %.",
                self.name(first),
                self.name(last),
            ),
            _ if pick == best => format!("{here} has the smallest {what}."),
            _ => format!(
                "{here} is the smallest value whose {what} is within {tolerance} % of the best ({}).",
                self.name(best)
            ),
        }];
        reason.extend(self.unconcerned());
        reason.extend(self.before(pick));
        reason.extend(self.after(last).filter(|_| shape != Shape::Flat));
        reason.extend(self.waste(pick, last));
        reason.extend(self.reads(pick));
        reason.extend(self.current(pick));
        reason
    }

    /// Whether the setting takes any part.
    fn unconcerned(&self) -> Option<String> {
        let first = self.figures(self.points[0]);
        let same = |place: &usize| {
            let figures = self.figures(*place);
            (&figures.folios, figures.device_reads) == (&first.folios, first.device_reads)
        };
        (self.points.len() > 1 && self.points.iter().all(same)).then(|| {
            "Folios and device reads are the same at every value: the setting takes no part in these \
             accesses."
                .to_owned()
        })
    }

    /// What the next smaller value costs.
    fn before(&self, pick: usize) -> Option<String> {
        let at = self.points.iter().position(|place| *place == pick)?;
        let before = *self.points.get(at.checked_sub(1)?)?;
        let worse = self.worse(before, pick).filter(|worse| *worse > 0.0)?;
        Some(format!("At {} it is {} more.", self.name(before), percent(worse)))
    }

    /// Whether the largest value is worse than the best.
    fn after(&self, last: usize) -> Option<String> {
        let best = self.points.iter().copied().min_by_key(|place| self.goal(*place))?;
        let worse = self.worse(last, best).filter(|_| !self.is_good(self.goal(last), best))?;
        Some(format!(
            "More than enough hurts: at {} it is {} more than at {}.",
            self.name(last),
            percent(worse),
            self.name(best)
        ))
    }

    /// What is read in vain at the value and at the largest one.
    fn waste(&self, pick: usize, last: usize) -> Option<String> {
        let [at_pick, at_last] = [pick, last].map(|place| self.figures(place));
        if at_pick.waste().max(at_last.waste()) < WASTE_SHARE {
            return None;
        }
        let mut text = match at_pick.waste() {
            0.0 => format!("At {} the program uses all pages read", self.name(pick)),
            waste => {
                let (name, waste) = (self.name(pick), percent(waste));
                format!("At {name} the program never uses {waste} of the pages read")
            }
        };
        if pick != last {
            let (name, waste) = (self.name(last), percent(at_last.waste()));
            text += &format!(", at {name} it never uses {waste}");
            let (bytes, fewer) = (at_last.device_reads.bytes, at_pick.device_reads.bytes);
            if bytes as f64 > fewer as f64 * NOTABLE {
                text += &format!(", out of {} times the bytes", times(bytes, fewer));
            }
        }
        Some(text + ".")
    }

    /// Whether the device gets many more requests than it would elsewhere.
    fn reads(&self, pick: usize) -> Option<String> {
        let fewest = self
            .points
            .iter()
            .copied()
            .min_by_key(|place| self.figures(*place).device_reads.count)?;
        let [here, there] = [pick, fewest].map(|place| self.figures(place).device_reads);
        let more = here.count as f64 > there.count as f64 * NOTABLE;
        // Fewer reads of much more data are no relief.
        let alike = there.bytes as f64 <= here.bytes as f64 * NOTABLE;
        (more && alike).then(|| {
            format!(
                "The device gets {} reads there, {} times as many as at {}, which matters where \
                 others use it too.",
                here.count,
                times(here.count, there.count),
                self.name(fewest)
            )
        })
    }

    /// What there is to gain over the value the source came with.
    fn current(&self, pick: usize) -> Option<String> {
        let current = *self.points.iter().find(|place| self.report.points[**place].is_current)?;
        if current == pick {
            return Some("It is what the source came with.".to_owned());
        }
        let change = self.worse(current, pick)?;
        let text = if change.abs() * 100.0 <= self.report.tolerance_percent {
            "is as good".to_owned()
        } else if change > 0.0 {
            format!("is {} worse", percent(change))
        } else {
            format!("is {} better", percent(-change))
        };
        Some(format!("{}, which the source came with, {text}.", self.name(current)))
    }

    /// How much larger the figure of `place` is than that of `than`, as a share of the latter.
    fn worse(&self, place: usize, than: usize) -> Option<f64> {
        let than = self.goal(than);
        (than > 0).then(|| self.goal(place) as f64 / than as f64 - 1.0)
    }

    /// Devices against each other: nothing to recommend.
    fn compare(&self, best: usize) -> Vec<String> {
        let what = self.report.goal.describe();
        let mut reason = vec![format!("{} has the smallest {what}.", self.name(best))];
        for place in self.points.iter().copied().filter(|place| *place != best) {
            let worse = self.worse(place, best).map_or("none".to_owned(), percent);
            reason.push(format!("At {} it is {worse} more.", self.name(place)));
        }
        reason
    }

    /// The smallest point after which no step towards the best gains a tenth.
    fn knee(&self, best: usize) -> Option<usize> {
        let end = self.points.iter().position(|place| *place == best)?;
        let gains = |pair: &[usize]| {
            let [before, after] = [pair[0], pair[1]].map(|place| self.goal(place) as f64);
            after < before * (1.0 - LEVEL_GAIN)
        };
        let last_gain = self.points[..=end].windows(2).rposition(gains)?;
        (self.report.axes.len() == 1).then(|| self.points[last_gain + 1])
    }

    fn doubts(&self, pick: usize, shape: Shape) -> Vec<Doubt> {
        let all = |test: &dyn Fn(&SweepFigures) -> bool| {
            self.points.iter().all(|place| test(self.figures(*place)))
        };
        let figures = self.figures(pick);
        let mut doubts = Vec::new();
        let mut doubt = |kind, text| doubts.push(Doubt { kind, text });
        if all(&|figures| figures.device_reads.count == 0) {
            let text = "nothing is read from the device: everything is in the page cache already";
            doubt(DoubtKind::NoReads, text.to_owned());
        } else if all(&|figures| wait_share(figures) < WAIT_SHARE) {
            let text = format!(
                "reads wait for less than {} of the time whatever the value: the program itself \
                 takes the time",
                percent(WAIT_SHARE)
            );
            doubt(DoubtKind::ProgramBound, text);
        } else if shape == Shape::Flat && all(&|figures| figures.device_busy >= BUSY_SHARE) {
            let text = format!(
                "the device is busy more than {} of the time whatever the value, with {:.1} requests \
                 at a time: it is the limit, and a faster one may tell values apart",
                percent(BUSY_SHARE),
                figures.queue_depth_mean
            );
            doubt(DoubtKind::DeviceBound, text);
        }
        doubts
    }
}

/// Waits as a share of the time; several threads can wait at once.
fn wait_share(figures: &SweepFigures) -> f64 {
    figures.read_wait_ns_total as f64 / figures.elapsed_ns.max(1) as f64
}

/// A share in percent; factors from 10 on are easier to grasp as such.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 0.05 => "less than 0.1 %".to_owned(),
        percent if percent < 1000.0 => format!("{percent:.1} %"),
        _ => format!("{share:.1} times"),
    }
}

fn times(a: u64, b: u64) -> String {
    format!("{:.1}", a as f64 / b.max(1) as f64)
}
