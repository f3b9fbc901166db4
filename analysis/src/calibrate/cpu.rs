//! What the CPU spends, from the gaps between the events of readers.
//!
//! A capture shows when a read began, when each folio was inserted, when
//! requests were issued and completed, when the read's last batch of folios was
//! ready and (through its return, or the next access) when it was copied. Each cost is the
//! mean of the gaps that consist of it and of costs found before; the largest
//! hundredth of the gaps, which interrupts and other tasks make, is left out.
//! Costs that no gap shows keep their defaults.

use replay::run::CpuCosts;
use traces::access::{Access, AccessKind, Anchor, AnchorKind, RecordedFolio, Source};
use traces::units::{ByteOffset, PageIndex, Time};

use super::observation::{mean, whole};

/// Fewest gaps a cost can rest on.
const GAPS_MIN: usize = 20;
/// Between two folios of one submission nothing waits longer than this.
const FOLIO_GAP_NS_MAX: u64 = 20_000;

/// One fitted CPU cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuFit {
    /// Its name in the `[cpu]` table.
    pub name: &'static str,
    /// The cost.
    pub ns: u64,
    /// Gaps it rests on; 0 for a default.
    pub observations: u64,
    /// What a capture needs to show it.
    pub needs: &'static str,
}

/// Fits the costs to all sources together.
pub(super) fn fit(sources: &[&Source]) -> (CpuCosts, Vec<CpuFit>) {
    let reads: Vec<ReadGaps> =
        sources.iter().enumerate().flat_map(|(at, source)| reads_of(at, source)).collect();
    let mut costs = CpuCosts::default();
    let mut fits = Vec::new();
    let mut take = |cost: &mut u64, name, gaps: Vec<f64>, needs| {
        let observations = gaps.len() as u64;
        let found = gaps.len() >= GAPS_MIN;
        if found {
            *cost = whole(trimmed_mean(gaps));
        }
        fits.push(CpuFit {
            name,
            ns: *cost,
            observations: if found { observations } else { 0 },
            needs,
        });
    };
    let calls = reads.iter().filter(|read| read.is_cached()).filter_map(ReadGaps::duration_ns);
    take(&mut costs.call_ns, "call_ns", calls.collect(), "no read was fully cached");
    let folios = reads.iter().flat_map(|read| read.folio_gaps_ns.iter().copied());
    take(&mut costs.folio_ns, "folio_ns", folios.collect(), "no two folios were inserted in a row");
    let (call_ns, folio_ns) = (costs.call_ns as f64, costs.folio_ns as f64);
    let requests = reads.iter().filter_map(|read| read.to_first_issue(call_ns, folio_ns));
    take(
        &mut costs.request_ns,
        "request_ns",
        requests.collect(),
        "no lone reader issued a request at once",
    );
    let wakes = reads.iter().filter_map(|read| read.wake_ns);
    take(
        &mut costs.wake_ns,
        "wake_ns",
        wakes.collect(),
        "no lone reader waited in a read of one batch",
    );
    let copy = copy_page_ns(&reads, sources.len());
    let (observations, ns) = copy.unwrap_or((0, costs.copy_page_ns));
    costs.copy_page_ns = ns;
    fits.push(CpuFit {
        name: "copy_page_ns",
        ns,
        observations,
        needs: "reads end in batches of one size",
    });
    // The copy of a page holds its share of the folio's cost.
    if observations > 0 {
        costs.copy_folio_ns = 0;
    }
    (costs, fits)
}

/// The mean without the largest hundredth.
fn trimmed_mean(mut gaps: Vec<f64>) -> f64 {
    gaps.sort_by(f64::total_cmp);
    let kept = (gaps.len() * 99).div_ceil(100);
    mean(gaps.into_iter().take(kept))
}

/// Events within one read.
#[derive(Clone, Debug)]
struct ReadGaps {
    source: usize,
    began: Time,
    /// When its last batch was ready.
    ready: Option<Time>,
    /// Pages of that batch, and the pause after it.
    last_batch: Option<(f64, f64)>,
    folio_gaps_ns: Vec<f64>,
    folios: usize,
    /// Folios inserted before the first request was issued, and when that was, for a read that
    /// began with a submission.
    first_issue: Option<(usize, Time)>,
    wake_ns: Option<f64>,
}

impl ReadGaps {
    fn is_cached(&self) -> bool {
        self.folios == 0 && self.wake_ns.is_none()
    }

    fn duration_ns(&self) -> Option<f64> {
        self.ready.map(|ready| (ready - self.began) as f64)
    }

    fn to_first_issue(&self, call_ns: f64, folio_ns: f64) -> Option<f64> {
        let (folios, issued) = self.first_issue?;
        Some((issued - self.began) as f64 - call_ns - folios as f64 * folio_ns)
    }
}

/// The reads of a source. Requests and wake-ups belong to a read only where one thread reads.
fn reads_of(number: usize, source: &Source) -> Vec<ReadGaps> {
    let Some(recorded) = &source.recorded else { return Vec::new() };
    let requests = if source.threads.len() == 1 { &recorded.reads[..] } else { &[] };
    let mut issues: Vec<Time> = requests.iter().map(|read| read.issued).collect();
    let mut completions: Vec<Time> = requests.iter().filter_map(|read| read.completed).collect();
    issues.sort_unstable();
    completions.sort_unstable();
    let mut reads = Vec::new();
    for (access, next) in successive(source) {
        let thread = access.thread;
        let AccessKind::Read { pos, count } = access.kind else { continue };
        let size_bytes = source.files[source.opens[access.open as usize].file as usize].size_bytes;
        let span = Span {
            source: number,
            began: access.time,
            next: next.time,
            end: ByteOffset(pos.0.saturating_add(count).min(size_bytes)).page_up(),
            folios: within(&recorded.folios, access.seq, next.seq, |folio| folio.seq)
                .iter()
                .filter(|folio| folio.thread == thread)
                .copied()
                .collect(),
            anchors: within(&source.anchors, access.seq, next.seq, |anchor| anchor.seq)
                .iter()
                .filter(|anchor| anchor.thread == thread)
                .copied()
                .collect(),
            issues: within(&issues, access.time.0, next.time.0, |time| time.0),
            completions: within(&completions, access.time.0, next.time.0, |time| time.0),
        };
        reads.push(span.gaps());
    }
    reads
}

/// Each access with the next one of its thread.
fn successive(source: &Source) -> Vec<(&Access, &Access)> {
    let mut last: Vec<Option<&Access>> = vec![None; source.threads.len()];
    let mut pairs = Vec::with_capacity(source.accesses.len());
    for access in &source.accesses {
        if let Some(before) = last[access.thread as usize].replace(access) {
            pairs.push((before, access));
        }
    }
    pairs
}

/// The items whose position lies in `from..to`.
fn within<T>(items: &[T], from: u64, to: u64, position: impl Fn(&T) -> u64) -> &[T] {
    let first = items.partition_point(|item| position(item) < from);
    let last = items.partition_point(|item| position(item) < to);
    &items[first..last.max(first)]
}

/// What was recorded from the beginning of a read to the beginning of the next access.
struct Span<'s> {
    source: usize,
    began: Time,
    /// When the thread's next access began.
    next: Time,
    end: PageIndex,
    folios: Vec<RecordedFolio>,
    anchors: Vec<Anchor>,
    issues: &'s [Time],
    completions: &'s [Time],
}

impl Span<'_> {
    fn gaps(&self) -> ReadGaps {
        let batches = || self.anchors.iter().filter(|anchor| anchor.kind == AnchorKind::Batch);
        let last_batch = batches().next_back();
        let ready = last_batch.map(|batch| batch.time);
        let mut returns = self.anchors.iter().filter(|anchor| anchor.kind == AnchorKind::Return);
        let copied = returns.next_back().map_or(self.next, |anchor| anchor.time);
        let pause = last_batch.map(|batch| {
            let pages = self.end.0.saturating_sub(batch.page.0) as f64;
            (pages, copied.0.saturating_sub(batch.time.0) as f64)
        });
        ReadGaps {
            source: self.source,
            began: self.began,
            ready,
            last_batch: pause,
            folio_gaps_ns: self.folio_gaps(),
            folios: self.folios.len(),
            first_issue: self.first_issue(batches().next()),
            wake_ns: ready.filter(|_| batches().count() == 1).and_then(|ready| self.wake(ready)),
        }
    }

    fn folio_gaps(&self) -> Vec<f64> {
        let pairs = self.folios.windows(2);
        let in_a_row = pairs.filter(|pair| pair[0].page + pair[0].order.pages() == pair[1].page);
        let gaps = in_a_row.map(|pair| pair[1].time - pair[0].time);
        gaps.filter(|gap| *gap <= FOLIO_GAP_NS_MAX).map(|gap| gap as f64).collect()
    }

    fn first_issue(&self, first_batch: Option<&Anchor>) -> Option<(usize, Time)> {
        let first = self.folios.first()?;
        let issued = *self.issues.iter().find(|issued| **issued >= first.time)?;
        let at_once = first_batch.is_none_or(|batch| first.seq < batch.seq);
        let before = self.folios.iter().take_while(|folio| folio.time <= issued).count();
        at_once.then_some((before, issued))
    }

    /// From the completion that ended a wait to the batch.
    fn wake(&self, ready: Time) -> Option<f64> {
        let completed = *self.completions.iter().rfind(|completed| **completed <= ready)?;
        let busy_until = self.issues.iter().rfind(|issued| **issued <= ready);
        let waited = busy_until.is_none_or(|issued| *issued < completed);
        waited.then_some((ready - completed) as f64)
    }
}

/// The slope of the pause after a read over the pages of its last batch, with a level of its own
/// for every source: programs differ.
fn copy_page_ns(reads: &[ReadGaps], sources: usize) -> Option<(u64, u64)> {
    let (mut covariance, mut variance, mut used) = (0.0, 0.0, 0);
    for source in 0..sources {
        let points = reads.iter().filter(|read| read.source == source);
        let mut points: Vec<(f64, f64)> = points.filter_map(|read| read.last_batch).collect();
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        points.truncate((points.len() * 99).div_ceil(100));
        let pages_mean = mean(points.iter().map(|(pages, _)| *pages));
        let pause_mean = mean(points.iter().map(|(_, pause)| *pause));
        for (pages, pause) in &points {
            covariance += (pages - pages_mean) * (pause - pause_mean);
            variance += (pages - pages_mean).powi(2);
        }
        used += points.len() as u64;
    }
    let slope = covariance / variance;
    (variance > 0.0 && slope >= 0.0 && used >= GAPS_MIN as u64).then(|| (used, whole(slope)))
}
