//! Settings of the machine a source was recorded on, and where each value came from.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::units::{Order, PAGE_SHIFT, PAGE_SIZE};

/// Where a value came from; later ones override earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Nothing said so; a default of the kernel.
    Assumed,
    /// Worked out from what the capture shows.
    Recovered,
    /// The `*.meta.toml` beside the capture, or the workload description.
    Sidecar,
    /// An event of the capture states it.
    Recorded,
    /// `--set` on the command line.
    Given,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Assumed => "assumed",
            Self::Recovered => "recovered",
            Self::Sidecar => "sidecar",
            Self::Recorded => "recorded",
            Self::Given => "given",
        })
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A default.
    pub fn assumed(value: T) -> Self {
        Self { value, origin: Origin::Assumed }
    }

    /// Takes `value` if its origin is at least as good as the present one's.
    pub fn offer(&mut self, value: T, origin: Origin) {
        self.take(Self { value, origin });
    }

    /// Becomes `other` if its origin is at least as good.
    fn take(&mut self, other: Self) {
        if other.origin >= self.origin {
            *self = other;
        }
    }
}

/// The I/O scheduler of a queue: who gets the next free tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The order of arrival.
    #[default]
    None,
    /// Mostly the order of sectors.
    MqDeadline,
}

impl Scheduler {
    /// By its name, or by what `queue/scheduler` shows: all names, the one in use in brackets.
    /// `kyber` takes reads in order of arrival, like no scheduler; `bfq` sorts those of a process by
    /// sector, for which `mq-deadline` stands.
    pub fn from_name(shown: &str) -> Option<Self> {
        let bracketed = shown.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        match bracketed.map_or(shown, |(name, _)| name) {
            "none" | "kyber" => Some(Self::None),
            "mq-deadline" | "bfq" => Some(Self::MqDeadline),
            _ => None,
        }
    }

    /// Its name in `queue/scheduler`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
        }
    }
}

/// Settings that decide readahead, device reads or time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Kernel release, empty where unknown.
    pub kernel: Setting<String>,
    /// Policy the kernel ran, empty where it is that of its release.
    pub policy: Setting<String>,
    /// Filesystem, empty where unknown.
    pub filesystem: Setting<String>,
    /// `bdi->ra_pages`, from `read_ahead_kb`.
    pub ra_pages: Setting<u64>,
    /// `bdi->io_pages` and the largest request, from `max_sectors_kb`.
    pub max_sectors_kb: Setting<u64>,
    /// Most segments of a request (`max_segments`): runs of physically contiguous memory.
    pub segments_max: Setting<u64>,
    /// Largest segment in bytes (`max_segment_size`).
    pub segment_bytes_max: Setting<u64>,
    /// Sectors between boundaries that no request crosses (`chunk_sectors`); `None` has none.
    pub chunk_sectors: Setting<Option<NonZeroU64>>,
    /// The I/O scheduler (`scheduler`); `None` takes that of the device model.
    pub scheduler: Setting<Option<Scheduler>>,
    /// Requests that the queue takes (`nr_requests`); `None` takes what the device model has.
    pub nr_requests: Setting<Option<NonZeroU64>>,
    /// Smallest folio order of the filesystem's mappings.
    pub order_min: Setting<Order>,
    /// Largest folio order; 0 where the filesystem has no large folios.
    pub order_max: Setting<Order>,
    /// Pages the page cache may hold; `None` is unlimited.
    pub memory_pages: Setting<Option<u64>>,
    /// Size in bytes of files whose size no event states; `None` takes what was read.
    pub file_size_bytes: Setting<Option<u64>>,
}

impl Default for Settings {
    /// Kernel defaults on x86-64 with a filesystem that has large folios.
    fn default() -> Self {
        Self {
            kernel: Setting::assumed(String::new()),
            policy: Setting::assumed(String::new()),
            filesystem: Setting::assumed(String::new()),
            ra_pages: Setting::assumed(32),
            max_sectors_kb: Setting::assumed(1280),
            segments_max: Setting::assumed(128),
            segment_bytes_max: Setting::assumed(1 << 16),
            chunk_sectors: Setting::assumed(None),
            scheduler: Setting::assumed(None),
            nr_requests: Setting::assumed(None),
            order_min: Setting::assumed(Order(0)),
            order_max: Setting::assumed(Order(9)),
            memory_pages: Setting::assumed(None),
            file_size_bytes: Setting::assumed(None),
        }
    }
}

/// A `--set` or sidecar entry that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// No such setting.
    #[error("unknown setting `{key}`; known are {}", KEYS.join(", "))]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// The value does not parse.
    #[error("setting `{key}`: `{value}` is not {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// Keys of `--set` and of the sidecar.
pub const KEYS: &[&str] = &[
    "kernel",
    "policy",
    "fs",
    "read_ahead_kb",
    "max_sectors_kb",
    "max_segments",
    "max_segment_size",
    "chunk_sectors",
    "scheduler",
    "nr_requests",
    "min_folio_order",
    "max_folio_order",
    "memory",
    "file_size",
];

const KB_PER_PAGE_SHIFT: u32 = PAGE_SHIFT - 10;

impl Settings {
    /// Sets one value by its `--set` or sidecar key. Sizes in KiB as sysfs counts them; `memory` in
    /// bytes with an optional K, M or G.
    pub fn set(&mut self, key: &str, value: &str, origin: Origin) -> Result<(), SettingError> {
        let bad = |expected| SettingError::BadValue {
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        };
        let number = |expected| value.parse::<u64>().map_err(|_| bad(expected));
        let order = || match value.parse::<u8>() {
            Ok(order) if order <= 11 => Ok(Order(order)),
            _ => Err(bad("a folio order from 0 to 11")),
        };
        let bytes = || parse_bytes(value).ok_or_else(|| bad("a size such as 64M"));
        match key {
            "kernel" => self.kernel.offer(value.to_owned(), origin),
            "policy" => self.policy.offer(value.to_owned(), origin),
            "fs" => self.set_filesystem(value, origin),
            "read_ahead_kb" => {
                let kb = number("a number of KiB")?;
                self.ra_pages.offer(kb >> KB_PER_PAGE_SHIFT, origin);
            }
            "max_sectors_kb" => {
                let expected = "a number of KiB, 4 or more";
                let kb = number(expected)?;
                if kb < 4 {
                    return Err(bad(expected));
                }
                self.max_sectors_kb.offer(kb, origin);
            }
            "max_segments" => {
                self.segments_max.offer(number("a number, 1 or more")?.max(1), origin);
            }
            "max_segment_size" => {
                let bytes = number("a number of bytes, 4096 or more")?.max(PAGE_SIZE);
                self.segment_bytes_max.offer(bytes, origin);
            }
            // sysfs writes 0 where there are no chunks.
            "chunk_sectors" => {
                let sectors = number("a number of sectors")?;
                self.chunk_sectors.offer(NonZeroU64::new(sectors), origin);
            }
            "scheduler" => {
                let scheduler = Scheduler::from_name(value);
                let scheduler = scheduler.ok_or_else(|| bad("none, mq-deadline, kyber or bfq"))?;
                self.scheduler.offer(Some(scheduler), origin);
            }
            "nr_requests" => {
                let expected = "a number, 1 or more";
                let requests = NonZeroU64::new(number(expected)?).ok_or_else(|| bad(expected))?;
                self.nr_requests.offer(Some(requests), origin);
            }
            "min_folio_order" => self.order_min.offer(order()?, origin),
            "max_folio_order" => self.order_max.offer(order()?, origin),
            "memory" => self.memory_pages.offer(Some(bytes()? >> PAGE_SHIFT), origin),
            "file_size" => self.file_size_bytes.offer(Some(bytes()?), origin),
            _ => {
                return Err(SettingError::UnknownKey { key: key.to_owned() });
            }
        }
        Ok(())
    }

    /// The filesystem, and with it whether its mappings have large folios.
    fn set_filesystem(&mut self, name: &str, origin: Origin) {
        // btrfs has large folios only as an experimental option up to 7.3.
        if name == "btrfs" {
            self.order_max.offer(Order(0), Origin::Recovered);
        }
        self.filesystem.offer(name.to_owned(), origin);
    }

    /// Takes each value of `later` whose origin is at least as good.
    pub fn overlay(&mut self, later: Self) {
        let Self {
            kernel,
            policy,
            filesystem,
            ra_pages,
            max_sectors_kb,
            segments_max,
            segment_bytes_max,
            chunk_sectors,
            scheduler,
            nr_requests,
            order_min,
            order_max,
            memory_pages,
            file_size_bytes,
        } = later;
        self.kernel.take(kernel);
        self.policy.take(policy);
        self.filesystem.take(filesystem);
        self.ra_pages.take(ra_pages);
        self.max_sectors_kb.take(max_sectors_kb);
        self.segments_max.take(segments_max);
        self.segment_bytes_max.take(segment_bytes_max);
        self.chunk_sectors.take(chunk_sectors);
        self.scheduler.take(scheduler);
        self.nr_requests.take(nr_requests);
        self.order_min.take(order_min);
        self.order_max.take(order_max);
        self.memory_pages.take(memory_pages);
        self.file_size_bytes.take(file_size_bytes);
    }

    /// `bdi->io_pages`.
    pub fn io_pages(&self) -> u64 {
        self.max_sectors_kb.value >> KB_PER_PAGE_SHIFT
    }

    /// `read_ahead_kb`.
    pub fn read_ahead_kb(&self) -> u64 {
        self.ra_pages.value << KB_PER_PAGE_SHIFT
    }
}

/// A size in bytes: a number with an optional K, M, G or T (powers of 1024).
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't', 'i', 'B']);
    let shift = match text[digits.len()..].trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}
