//! What the buffers of an instance lost.

use std::fs;

use crate::RecordError;
use crate::error::at;
use crate::tracefs::Instance;

/// What one CPU's buffer lost (`per_cpu/cpuN/stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLoss {
    /// The CPU.
    pub cpu: u32,
    /// Events overwritten before they were read.
    pub overrun: u64,
    /// Events that did not fit while another was being written.
    pub commit_overrun: u64,
    /// Events that found the buffer full.
    pub dropped_events: u64,
}

impl CpuLoss {
    /// All that was lost.
    pub fn events(&self) -> u64 {
        self.overrun + self.commit_overrun + self.dropped_events
    }
}

/// The CPUs that lost events.
pub(crate) fn losses(instance: &Instance, cpus: &[u32]) -> Result<Vec<CpuLoss>, RecordError> {
    let mut losses = Vec::new();
    for &cpu in cpus {
        let path = instance.path(&format!("per_cpu/cpu{cpu}/stats"));
        losses.push(parse(cpu, &fs::read_to_string(&path).map_err(at(&path))?));
    }
    losses.retain(|loss| loss.events() > 0);
    Ok(losses)
}

fn parse(cpu: u32, stats: &str) -> CpuLoss {
    let counter = |key: &str| {
        let value = stats.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    CpuLoss {
        cpu,
        overrun: counter("overrun"),
        commit_overrun: counter("commit overrun"),
        dropped_events: counter("dropped events"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_found_by_its_whole_name() {
        let stats = "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 9\noldest event ts:     1.5\n\
            now ts:     2.5\ndropped events: 4\nread events: 7\n";
        let loss = parse(3, stats);
        assert_eq!((loss.overrun, loss.commit_overrun, loss.dropped_events), (1, 2, 4));
        assert_eq!((loss.cpu, loss.events()), (3, 7));
    }
}
