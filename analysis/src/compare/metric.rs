//! The metrics that are compared.

use std::fmt;

use serde::{Serialize, Serializer};

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
    /// It is neither good nor bad.
    Neither,
}

/// What a metric is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Folio orders.
    Orders,
}

/// A metric, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Mean order of the folio that a byte is in.
    MeanOrder,
    /// Folios inserted.
    Folios,
    /// Read requests the device got.
    DeviceReads,
    /// Their bytes.
    DeviceReadBytes,
    /// Pages inserted into the page cache.
    PagesInserted,
    /// Pages inserted and never used.
    PagesUnused,
    /// From the first access to the last.
    Elapsed,
    /// Median time a read waits.
    ReadWaitP50,
    /// 99th percentile of it.
    ReadWaitP99,
    /// The longest wait.
    ReadWaitMax,
    /// Median time from issue to completion of a device read.
    DeviceReadTimeP50,
    /// 99th percentile of it.
    DeviceReadTimeP99,
    /// The slowest device read.
    DeviceReadTimeMax,
    /// Times the page cache lock is taken.
    LockAcquisitions,
    /// Of these, under contention.
    LockContended,
    /// Insertions that found a page already there.
    InsertConflicts,
    /// Pages looked up one by one.
    Lookups,
    /// Windows filled.
    Windows,
}

use Better::{Less, More, Neither};
use Unit::{Bytes, Count, Nanoseconds, Orders};

impl Metric {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 18] = [
        Self::MeanOrder,
        Self::Folios,
        Self::DeviceReads,
        Self::DeviceReadBytes,
        Self::PagesInserted,
        Self::PagesUnused,
        Self::Elapsed,
        Self::ReadWaitP50,
        Self::ReadWaitP99,
        Self::ReadWaitMax,
        Self::DeviceReadTimeP50,
        Self::DeviceReadTimeP99,
        Self::DeviceReadTimeMax,
        Self::LockAcquisitions,
        Self::LockContended,
        Self::InsertConflicts,
        Self::Lookups,
        Self::Windows,
    ];

    /// Key, name for people, unit and good direction.
    const fn info(self) -> (&'static str, &'static str, Unit, Better) {
        match self {
            Self::MeanOrder => ("folios.mean_order", "mean folio order", Orders, More),
            Self::Folios => ("folios.total", "folios", Count, Less),
            Self::DeviceReads => ("device_reads.count", "device reads", Count, Less),
            Self::DeviceReadBytes => ("device_reads.bytes", "bytes read", Bytes, Less),
            Self::PagesInserted => ("pages.inserted", "pages inserted", Count, Neither),
            Self::PagesUnused => ("pages.unused", "pages unused", Count, Less),
            Self::Elapsed => ("elapsed_ns", "elapsed", Nanoseconds, Less),
            Self::ReadWaitP50 => ("read_wait_ns.p50", "read wait p50", Nanoseconds, Less),
            Self::ReadWaitP99 => ("read_wait_ns.p99", "read wait p99", Nanoseconds, Less),
            Self::ReadWaitMax => ("read_wait_ns.max", "read wait max", Nanoseconds, Less),
            Self::DeviceReadTimeP50 => ("device_read_ns.p50", "device read p50", Nanoseconds, Less),
            Self::DeviceReadTimeP99 => ("device_read_ns.p99", "device read p99", Nanoseconds, Less),
            Self::DeviceReadTimeMax => ("device_read_ns.max", "device read max", Nanoseconds, Less),
            Self::LockAcquisitions => ("cache_lock.acquisitions", "lock taken", Count, Less),
            Self::LockContended => ("cache_lock.contended", "lock contended", Count, Less),
            Self::InsertConflicts => ("cache_lock.insert_conflicts", "failed inserts", Count, Less),
            Self::Lookups => ("cache_lock.lookups", "lookups", Count, Less),
            Self::Windows => ("windows", "windows", Count, Neither),
        }
    }

    /// Its name in JSON, budgets and baselines: its path in `rareplay.replay/1` where it is there.
    pub fn key(self) -> &'static str {
        self.info().0
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        self.info().1
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        self.info().2
    }

    /// Which direction is good.
    pub fn better(self) -> Better {
        self.info().3
    }

    /// The metric of a key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.key() == key)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.key())
    }
}
