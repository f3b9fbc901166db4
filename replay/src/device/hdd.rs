//! A hard disk: seek, rotation, zones, and a cache that reads on behind a read.
//!
//! The seek curve is the square root of the distance up to a third of the
//! stroke and a straight line beyond (Ruemmler and Wilkes, "An introduction to
//! disk drive modeling", IEEE Computer, March 1994), through the three values
//! data sheets give: one track, the average (a third of the stroke) and the
//! whole stroke. Where a drive's seeks were measured, `seek_points` lie between
//! them. Outer zones have more sectors on a track. Tracks are skewed by
//! the time of a track switch, so that a sequential read goes on without a lost
//! turn.
//!
//! After a read the drive reads on into its cache until the segment is full or
//! another command moves the head; the cache keeps the last segments. A read
//! that continues where the head is costs the media rate and no turn, one that
//! lies in a segment costs the interface.
//!
//! The drive serves one command at a time. Of those it holds (native command
//! queuing) it takes the one that it reaches first, and one that has waited
//! longer than `command_age_ns_max` before all others.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use traces::units::{SECTOR_SHIFT, Time};

use super::pipe::Pipe;
use super::{Device, Queued};
use crate::block::Request;

/// A measured seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekPoint {
    /// How far.
    pub cylinders: u64,
    /// How long.
    pub seek_ns: u64,
}

/// Parameters of a hard disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddParameters {
    /// Turns per minute.
    pub rotations_per_minute: NonZeroU64,
    /// Positions of the arm.
    pub cylinders: NonZeroU64,
    /// Surfaces: tracks of a cylinder.
    pub heads: NonZeroU64,
    /// Zones of equal width, from the outside in.
    pub zones: NonZeroU64,
    /// Sectors on a track of the outermost zone.
    pub track_sectors_outer: NonZeroU64,
    /// Sectors on a track of the innermost zone.
    pub track_sectors_inner: NonZeroU64,
    /// Seek to the next cylinder.
    pub seek_track_ns: u64,
    /// Average seek: over a third of the cylinders.
    pub seek_average_ns: u64,
    /// Seek over all cylinders.
    pub seek_full_ns: u64,
    /// Measured seeks between the first and the last cylinder; left out, the average seek is the
    /// only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seek_points: Vec<SeekPoint>,
    /// Switch to the next track within a sequential read.
    pub track_switch_ns: u64,
    /// Time of the drive's electronics for a command.
    pub command_ns: u64,
    /// The same for a command that the cache answers; left out, it is no shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_command_ns: Option<u64>,
    /// Bandwidth of the interface.
    pub interface_bytes_per_s: NonZeroU64,
    /// Segments of the cache.
    pub cache_segments: u64,
    /// Bytes of a segment: as far as the drive reads on.
    pub cache_segment_bytes: u64,
    /// A command older than this is served next.
    pub command_age_ns_max: u64,
}

/// Cylinders with the same number of sectors per track.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    track_sectors: u64,
}

/// Where a sector is.
#[derive(Clone, Copy, Debug)]
struct Place {
    cylinder: u64,
    /// Track, counted over the whole disk.
    track: u64,
    track_sectors: u64,
    /// Sector on the track.
    sector: u64,
}

/// Sectors that the head reads, or has read, in one go.
#[derive(Clone, Copy, Debug)]
struct Stream {
    start: u64,
    /// Sectors before this one have been read at `read_at`.
    end: u64,
    read_at: Time,
    /// Where reading on stops.
    limit: u64,
    /// Time of a sector, with its share of a track switch, in picoseconds.
    sector_ps: u64,
}

impl Stream {
    /// The first sector not read at `now`.
    fn end_at(&self, now: Time) -> u64 {
        let elapsed_ns = now.0.saturating_sub(self.read_at.0);
        let sectors = u128::from(elapsed_ns) * 1000 / u128::from(self.sector_ps.max(1));
        self.limit.min(self.end.saturating_add(sectors.try_into().unwrap_or(u64::MAX)))
    }

    fn reaches(&self, end: u64) -> Time {
        self.read_at + (end.saturating_sub(self.end)).saturating_mul(self.sector_ps) / 1000
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Hdd {
    parameters: HddParameters,
    turn_ns: u64,
    zones: Vec<Zone>,
    sectors: u64,
    /// The seek curve, by distance.
    seeks: Vec<SeekPoint>,
    cylinder: u64,
    /// What the head reads now.
    stream: Option<Stream>,
    /// Cached runs of sectors, oldest first.
    segments: VecDeque<(u64, u64)>,
    interface: Pipe,
}

impl Hdd {
    pub(super) fn new(parameters: &HddParameters) -> Self {
        let mut zones = Vec::new();
        let (mut sectors, mut cylinder) = (0, 0);
        let zone_count = parameters.zones.get().min(parameters.cylinders.get());
        for zone in 0..zone_count {
            let track_sectors = zone_track_sectors(parameters, zone, zone_count);
            zones.push(Zone { first_sector: sectors, first_cylinder: cylinder, track_sectors });
            let next = parameters.cylinders.get() * (zone + 1) / zone_count;
            sectors += (next - cylinder) * parameters.heads.get() * track_sectors;
            cylinder = next;
        }
        Self {
            seeks: seek_curve(parameters),
            parameters: parameters.clone(),
            turn_ns: 60_000_000_000 / parameters.rotations_per_minute.get(),
            zones,
            sectors,
            cylinder: 0,
            stream: None,
            segments: VecDeque::new(),
            interface: Pipe::new(parameters.interface_bytes_per_s.get()),
        }
    }

    /// Sectors of the whole disk.
    #[cfg(test)]
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    fn place(&self, sector: u64) -> Place {
        let sector = sector % self.sectors;
        let zone = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let zone = self.zones[zone];
        let heads = self.parameters.heads.get();
        let track = (sector - zone.first_sector) / zone.track_sectors;
        Place {
            cylinder: zone.first_cylinder + track / heads,
            track: zone.first_cylinder * heads + track,
            track_sectors: zone.track_sectors,
            sector: (sector - zone.first_sector) % zone.track_sectors,
        }
    }

    #[expect(clippy::cast_sign_loss, reason = "no seek is shorter than 0")]
    pub(super) fn seek_ns(&self, cylinders: u64) -> u64 {
        if cylinders == 0 {
            return 0;
        }
        let after = self.seeks.partition_point(|point| point.cylinders <= cylinders);
        let to = self.seeks[after.min(self.seeks.len() - 1)];
        let Some(from) = after.checked_sub(1).map(|at| self.seeks[at]) else { return to.seek_ns };
        let third = self.parameters.cylinders.get() / 3;
        let scale = |cylinders: u64| {
            let distance = cylinders as f64;
            if to.cylinders <= third.max(2) { distance.sqrt() } else { distance }
        };
        let span = (scale(to.cylinders) - scale(from.cylinders)).max(f64::MIN_POSITIVE);
        let share = (scale(cylinders) - scale(from.cylinders)) / span;
        let (from_ns, to_ns) = (from.seek_ns as f64, to.seek_ns as f64);
        (from_ns + (to_ns - from_ns) * share).max(0.0) as u64
    }

    /// From a head on the right track at `now` to the beginning of a sector.
    fn turn_to_ns(&self, now: Time, place: Place) -> u64 {
        let skew_ns = self.parameters.track_switch_ns % self.turn_ns;
        let on_track_ns = self.turn_ns * place.sector / place.track_sectors;
        let begins_ns = (u128::from(place.track) * u128::from(skew_ns) + u128::from(on_track_ns))
            % u128::from(self.turn_ns);
        (self.turn_ns + begins_ns as u64 - now.0 % self.turn_ns) % self.turn_ns
    }

    /// When the head stands at the beginning of a sector, if it leaves at `now`.
    fn positioned(&self, now: Time, place: Place) -> Time {
        let on_track = now + self.seek_ns(self.cylinder.abs_diff(place.cylinder));
        on_track + self.turn_to_ns(on_track, place)
    }

    /// Whether sectors `start..end` are in the cache at `now`.
    fn is_cached(&self, now: Time, start: u64, end: u64) -> bool {
        let holds = |(first, last): (u64, u64)| first <= start && end <= last;
        self.segments.iter().copied().any(holds)
            || self.stream.is_some_and(|stream| holds((stream.start, stream.end_at(now))))
    }

    /// The stream of the head, if a read from `start` continues it without a turn lost.
    fn continued(&self, now: Time, start: u64) -> Option<Stream> {
        let stream = self.stream?;
        let read = stream.end_at(now);
        let reads_on = read < stream.limit || stream.read_at >= now;
        (stream.start <= start && start <= read && reads_on).then_some(stream)
    }

    /// Reads from the media; returns when the first and the last sector have passed the head.
    fn read_media(&mut self, now: Time, start: u64, end: u64) -> (Time, Time) {
        let reads_on = self.parameters.cache_segment_bytes >> SECTOR_SHIFT;
        let mut stream = if let Some(stream) = self.continued(now, start) {
            stream
        } else {
            self.keep_stream(now);
            let place = self.place(start);
            let read_at = self.positioned(now, place);
            let track_ns = self.turn_ns + self.parameters.track_switch_ns;
            let sector_ps = track_ns * 1000 / place.track_sectors;
            Stream { start, end: start, read_at, limit: start, sector_ps }
        };
        let first = stream.reaches(start + 1).max(now);
        let last = stream.reaches(end).max(now);
        if end > stream.end {
            stream.read_at = stream.reaches(end);
            stream.end = end;
        }
        stream.limit = stream.limit.max(end + reads_on).min(self.sectors.max(end));
        stream.start = stream.start.max(end.saturating_sub(reads_on.max(end - start)));
        self.cylinder = self.place(end - 1).cylinder;
        self.stream = Some(stream);
        (first, last)
    }

    /// What the head has read so far becomes a segment; the oldest one goes.
    fn keep_stream(&mut self, now: Time) {
        let Some(stream) = self.stream.take() else { return };
        self.segments.push_back((stream.start, stream.end_at(now)));
        while self.segments.len() as u64 > self.parameters.cache_segments {
            self.segments.pop_front();
        }
    }
}

/// The seeks of the data sheet, and those measured in place of the average one.
fn seek_curve(parameters: &HddParameters) -> Vec<SeekPoint> {
    let cylinders = parameters.cylinders.get();
    let point = |cylinders, seek_ns| SeekPoint { cylinders, seek_ns };
    let mut seeks = parameters.seek_points.clone();
    if seeks.is_empty() {
        seeks.push(point((cylinders / 3).max(2), parameters.seek_average_ns));
    }
    seeks.push(point(1, parameters.seek_track_ns));
    seeks.push(point(cylinders, parameters.seek_full_ns));
    seeks.sort_by_key(|point| point.cylinders);
    seeks.dedup_by_key(|point| point.cylinders);
    seeks
}

fn zone_track_sectors(parameters: &HddParameters, zone: u64, zones: u64) -> u64 {
    let (outer, inner) = (parameters.track_sectors_outer, parameters.track_sectors_inner);
    let narrower = outer.get().saturating_sub(inner.get());
    outer.get() - narrower * zone / (zones - 1).max(1)
}

impl Device for Hdd {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let start = request.sector.0 % self.sectors;
        let end = start + request.sectors.max(1);
        let bytes = request.sectors << SECTOR_SHIFT;
        let answered =
            now + self.parameters.cached_command_ns.unwrap_or(self.parameters.command_ns);
        if self.is_cached(answered, start, end) {
            return self.interface.transfer(answered, bytes);
        }
        let (first, last) = self.read_media(now + self.parameters.command_ns, start, end);
        // Sectors cross the interface while the media is read, the last one after it.
        let sector = self.interface.transfer_ns(bytes.min(1 << SECTOR_SHIFT));
        self.interface.transfer(first, bytes).max(last + sector)
    }

    fn served_at_once(&self) -> usize {
        1
    }

    fn choose(&self, now: Time, held: &[Queued]) -> usize {
        let oldest = held.iter().enumerate().min_by_key(|(_, queued)| queued.submitted);
        if let Some((at, queued)) = oldest
            && now.0.saturating_sub(queued.submitted.0) > self.parameters.command_age_ns_max
        {
            return at;
        }
        let reached = |queued: &Queued| {
            let sectors = queued.request.sectors;
            let start = queued.request.sector.0 % self.sectors;
            if self.is_cached(now, start, start + sectors) {
                return now;
            }
            match self.continued(now, start) {
                Some(stream) => stream.reaches(start).max(now),
                None => self.positioned(now, self.place(start)),
            }
        };
        let first = held.iter().enumerate().min_by_key(|(_, queued)| reached(queued));
        first.map_or(0, |(at, _)| at)
    }
}
