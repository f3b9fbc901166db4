//! Resources that serve one thing at a time.

use traces::units::Time;

/// A wire: bytes cross it one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    bytes_per_s: u64,
    free: Time,
    /// The last size and its time: most transfers are of one size, and dividing is slow.
    last: (u64, u64),
}

impl Pipe {
    pub(super) fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s: bytes_per_s.max(1), free: Time(0), last: (0, 0) }
    }

    /// How long `bytes` take to cross.
    pub(super) fn transfer_ns(&mut self, bytes: u64) -> u64 {
        if self.last.0 != bytes {
            self.last = (bytes, transfer_ns(bytes, self.bytes_per_s));
        }
        self.last.1
    }

    /// When `bytes` that are ready at `now` have crossed.
    pub(super) fn transfer(&mut self, now: Time, bytes: u64) -> Time {
        self.free = self.free.max(now) + self.transfer_ns(bytes);
        self.free
    }

    /// Holds the wire for `ns` without data; returns when that is over.
    pub(super) fn hold(&mut self, now: Time, ns: u64) -> Time {
        self.free = self.free.max(now) + ns;
        self.free
    }
}

/// How long `bytes` take at a bandwidth that is not 0.
pub(super) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000) / bytes_per_s
}

/// Servers that are alike: each takes the next job when it is free.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    free: Vec<Time>,
}

impl Servers {
    pub(super) fn new(servers: u64) -> Self {
        Self { free: vec![Time(0); servers.max(1) as usize] }
    }

    /// When a job of `ns` that arrives at `now` is done, on the server that is free first.
    pub(super) fn serve(&mut self, now: Time, ns: u64) -> Time {
        let mut first = 0;
        for (server, free) in self.free.iter().enumerate() {
            if *free <= now {
                first = server;
                break;
            }
            if *free < self.free[first] {
                first = server;
            }
        }
        let done = self.free[first].max(now) + ns;
        self.free[first] = done;
        done
    }
}
