//! Schedulers, tags and merges, and what no queue and no device may do.

use proptest::prelude::*;
use traces::units::Time;

use super::{limits, preset, request, run};
use crate::block::Request;
use crate::device::queue::{Begun, DeviceQueue};
use crate::device::{Device, DeviceFile, QueueParameters, Scheduler, presets};

/// Serves one request at a time in 1 ms, and notes their order.
struct Recorder(Vec<u64>);

impl Device for Recorder {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        self.0.push(request.sector.0);
        now + 1_000_000
    }
}

fn parameters(scheduler: Scheduler, depth: u64, nr_requests: Option<u64>) -> QueueParameters {
    QueueParameters {
        depth: depth.try_into().expect("not 0"),
        scheduler,
        nr_requests: nr_requests.map(|requests| requests.try_into().expect("not 0")),
    }
}

/// Sectors in the order in which a device gets reads of 4 KiB that are submitted at once.
fn order(parameters: QueueParameters, sectors: &[u64]) -> Vec<u64> {
    served(parameters, sectors).0
}

/// The same, and the ids in the order of completion.
fn served(parameters: QueueParameters, sectors: &[u64]) -> (Vec<u64>, Vec<u32>) {
    let mut recorder = Recorder(Vec::new());
    let mut queue = DeviceQueue::new(&mut recorder, parameters, limits());
    for (id, sector) in sectors.iter().enumerate() {
        queue.submit(Time(0), request(*sector, 4096), id as u32);
    }
    let mut begun = Vec::new();
    let mut completed = Vec::new();
    let mut now = Time(0);
    queue.dispatch(now, &mut begun);
    while let Some(first) = begun.pop() {
        now = now.max(first.completes);
        queue.complete(now, first.queued.id, &mut completed);
        queue.dispatch(now, &mut begun);
    }
    drop(queue);
    (recorder.0, completed)
}

#[test]
fn no_scheduler_keeps_the_order_of_arrival() {
    assert_eq!(order(parameters(Scheduler::None, 1, None), &[80, 16, 48, 0]), [80, 16, 48, 0]);
}

#[test]
fn mq_deadline_goes_up_from_where_it_is() {
    assert_eq!(
        order(parameters(Scheduler::MqDeadline, 1, Some(64)), &[80, 16, 48, 0]),
        [0, 16, 48, 80]
    );
}

/// Requests that wait merge behind and before each other; a later one closes the gap between two.
#[test]
fn mq_deadline_merges_what_waits() {
    let one = parameters(Scheduler::MqDeadline, 1, Some(64));
    assert_eq!(served(one, &[0, 8]), (vec![0], vec![0, 1]), "behind");
    assert_eq!(served(one, &[8, 0]), (vec![0], vec![0, 1]), "before");
    assert_eq!(served(one, &[0, 16, 8]), (vec![0], vec![0, 2, 1]), "between");
    assert_eq!(served(one, &[0, 24, 8]), (vec![0, 24], vec![0, 2, 1]), "apart");
    let none = parameters(Scheduler::None, 1, None);
    assert_eq!(served(none, &[0, 8]), (vec![0, 8], vec![0, 1]), "no scheduler");
}

/// What is merged stays within `max_segments`.
#[test]
fn mq_deadline_merges_within_the_limits() {
    let sectors: Vec<u64> = (0..700).map(|n| n * 8).collect();
    let one = parameters(Scheduler::MqDeadline, 1, Some(1000));
    assert_eq!(order(one, &sectors), [0, 1024, 2048, 3072, 4096, 5120], "128 segments at most");
}

/// The scheduler sorts no more than `nr_requests`, those at the device included.
#[test]
fn nr_requests_bounds_what_is_sorted() {
    let few = parameters(Scheduler::MqDeadline, 1, Some(3));
    assert_eq!(order(few, &[80, 16, 48, 0]), [16, 48, 80, 0]);
    let tags = parameters(Scheduler::None, 4, Some(2));
    let mut device = Recorder(Vec::new());
    let mut queue = DeviceQueue::new(&mut device, tags, limits());
    (0..4).for_each(|id| queue.submit(Time(0), request(u64::from(id) * 16, 4096), id));
    queue.dispatch(Time(0), &mut Vec::new());
    assert_eq!(queue.into_use().depth_max, 2);
}

/// A lone read far away is served although nearer ones keep coming.
#[test]
fn mq_deadline_starves_nobody() {
    let mut recorder = Recorder(Vec::new());
    let parameters = parameters(Scheduler::MqDeadline, 1, Some(64));
    let mut queue = DeviceQueue::new(&mut recorder, parameters, limits());
    let mut begun = Vec::new();
    let mut now = Time(0);
    queue.submit(now, request(1 << 20, 4096), 0);
    queue.dispatch(now, &mut begun);
    queue.submit(now, request(0, 4096), 1);
    for n in 1..1_000 {
        // Gaps keep them from becoming one request.
        queue.submit(now, request((1 << 20) + n * 16, 4096), 1 + n as u32);
        let first = begun.pop().expect("one is always under way");
        now = first.completes;
        queue.complete(now, first.queued.id, &mut Vec::new());
        queue.dispatch(now, &mut begun);
    }
    drop(queue);
    let served = recorder.0.iter().position(|sector| *sector == 0).expect("it is served");
    assert!((500..530).contains(&served), "served as number {served}, one per millisecond");
}

/// With `together`, a completion is reported when the device has nothing left to do.
#[test]
fn completions_are_reported_together() {
    let file = fitted("together = true");
    let mut device = file.build();
    let mut queue = DeviceQueue::new(&mut *device, file.queue, limits());
    let mut begun = Vec::new();
    let mut completed = Vec::new();
    queue.submit(Time(0), request(0, 4096), 0);
    queue.submit(Time(0), request(800, 4096), 1);
    queue.dispatch(Time(0), &mut begun);
    queue.complete(begun[0].completes, begun[0].queued.id, &mut completed);
    assert_eq!(completed, []);
    queue.submit(begun[0].completes, request(1600, 4096), 2);
    queue.dispatch(begun[0].completes, &mut begun);
    queue.complete(begun[1].completes, begun[1].queued.id, &mut completed);
    assert_eq!(completed, []);
    queue.complete(begun[2].completes, begun[2].queued.id, &mut completed);
    assert_eq!(completed, [0, 1, 2]);
    let usage = queue.into_use();
    assert_eq!((usage.depth_max, usage.busy_ns), (3, begun[2].completes.0));
    assert_eq!(usage.in_flight_ns, 3 * begun[2].completes.0 - begun[0].completes.0);
}

/// A fitted device with one more line.
fn fitted(line: &str) -> DeviceFile {
    let text = format!(
        "[queue]\ndepth = 8\nscheduler = \"none\"\n[device]\nmodel = \"calibrated\"\n\
         fixed_ns = 20_000\ndiscontiguous_ns = 5_000\nidle_ns = 40_000\nbyte_ps = 400\nparallel = 1\n\
         {line}\n[device.seen]\nrequest_bytes_min = 4096\nrequest_bytes_max = 8192\ndepth_max = 2\n"
    );
    DeviceFile::parse(&text, "fitted").expect("it is right")
}

/// All presets, and fitted devices.
fn devices() -> Vec<DeviceFile> {
    let fitted = ["together = true", "link_bytes_per_s = 1_000_000_000"].map(fitted);
    presets::all().map(|(name, _)| preset(name)).chain(fitted).collect()
}

proptest! {
    /// Bytes in are bytes out, nothing completes before its issue, the device is never more than
    /// wholly busy, its tags hold, and every request is served.
    #[test]
    fn nothing_is_lost_or_early(
        which in 0..devices().len(),
        depth in 1..40_u64,
        under_way in 1..80_u64,
        nr_requests in prop::option::of(1..60_u64),
        is_sorted in any::<bool>(),
        arrivals in prop::collection::vec((0..1_u64 << 40, 1..300_u64), 1..120),
    ) {
        let mut file = devices().swap_remove(which);
        file.queue.depth = depth.try_into().expect("not 0");
        file.queue.nr_requests = nr_requests.map(|requests| requests.try_into().expect("not 0"));
        file.queue.scheduler =
            if is_sorted { Scheduler::MqDeadline } else { Scheduler::None };
        let arrivals: Vec<(u64, u64)> =
            arrivals.into_iter().map(|(sector, pages)| (sector, pages * 4096)).collect();
        let measured = run(&file, &arrivals, |open| open < under_way);
        prop_assert_eq!(measured.requests, arrivals.len() as u64);
        prop_assert_eq!(measured.usage.request_bytes, measured.bytes);
        prop_assert_eq!(measured.usage.requests + measured.usage.merged, measured.requests);
        prop_assert!(measured.usage.depth_max <= depth.min(under_way));
        prop_assert!(measured.usage.busy_ns <= measured.elapsed.0);
        prop_assert!(measured.usage.in_flight_ns <= depth * measured.usage.busy_ns);
        let last = measured.usage.depth.last().map(|change| (change.in_flight, change.waiting));
        prop_assert_eq!(last, Some((0, 0)));
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_an_error_or_a_device(text in "[a-z_=\\[\\]\"0-9 \n.-]{0,200}") {
        let _ = DeviceFile::parse(&text, "text");
    }
}

/// What begins when requests arrive at these gaps and sectors, and what the queue has seen.
/// `at_once` hands them in by [`DeviceQueue::issue`].
fn arriving(
    device: &DeviceFile,
    parameters: QueueParameters,
    arrivals: &[(u64, u64)],
    at_once: bool,
) -> (Vec<Begun>, String) {
    let mut device = device.build();
    let mut queue = DeviceQueue::new(&mut *device, parameters, limits());
    let (mut begun, mut completed, mut done) = (Vec::new(), Vec::new(), 0);
    let mut under_way: Vec<Begun> = Vec::new();
    let mut all = Vec::new();
    let mut arrives = Time(0);
    for (id, arrival) in arrivals.iter().map(Some).chain([None]).enumerate() {
        arrives = arrival.map_or(Time(u64::MAX), |(gap_ns, _)| arrives + *gap_ns);
        under_way.sort_by_key(|begun| std::cmp::Reverse((begun.completes, begun.queued.id)));
        while let Some(first) = under_way.pop_if(|first| first.completes <= arrives) {
            queue.complete(first.completes, first.queued.id, &mut completed);
            queue.dispatch(first.completes, &mut begun);
            all.extend(&begun);
            under_way.append(&mut begun);
            under_way.sort_by_key(|begun| std::cmp::Reverse((begun.completes, begun.queued.id)));
        }
        done += std::mem::take(&mut completed).len();
        let Some((_, sector)) = arrival else { break };
        if at_once {
            queue.issue(arrives, request(*sector, 4096), id as u32, &mut begun);
        } else {
            queue.submit(arrives, request(*sector, 4096), id as u32);
            queue.dispatch(arrives, &mut begun);
        }
        all.extend(&begun);
        under_way.append(&mut begun);
    }
    assert_eq!(done, arrivals.len(), "all of them complete");
    (all, format!("{:?}", queue.into_use()))
}

proptest! {
    /// A request that nothing waits before passes the scheduler; it is as if it had waited there.
    #[test]
    fn what_passes_the_scheduler_goes_as_if_it_had_waited(
        arrivals in prop::collection::vec((0_u64..12_000_000, (0_u64..64).prop_map(|n| n * 8)), 1..60),
        depth in 1_u64..5,
        nr_requests in prop::option::of(1_u64..6),
        deadline in any::<bool>(),
        name in prop::sample::select(vec!["hdd", "nvme", "virtio"]),
    ) {
        let scheduler = if deadline { Scheduler::MqDeadline } else { Scheduler::None };
        let parameters = parameters(scheduler, depth, nr_requests);
        let device = preset(name);
        prop_assert_eq!(
            arriving(&device, parameters, &arrivals, true),
            arriving(&device, parameters, &arrivals, false)
        );
    }
}
