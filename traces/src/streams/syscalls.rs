//! Reads and advice from system calls: which file a descriptor stands for.
//!
//! A call's arguments name a descriptor and the events between its enter and
//! exit name the file, so the first such call ties one to the other.

use rustc_hash::FxHashMap;

use super::builder::READ_BYTES_MAX;
use crate::event::Syscall;
use crate::units::{ByteOffset, PageIndex};

/// A call that has not returned.
#[derive(Clone, Copy)]
struct Running {
    call: Syscall,
    args: [u64; 6],
    seq: u64,
    claimed: bool,
}

/// One descriptor of one thread, from open(2) to the next open(2) that returns it.
#[derive(Clone, Copy, Default)]
struct Descriptor {
    id: u64,
    pos: u64,
}

/// A read that a thread is in, as its system call states it.
pub(super) struct ReadCall {
    pub(super) seq: u64,
    pub(super) descriptor: u64,
    /// First byte; for calls without a position, where the descriptor's last read ended.
    pub(super) pos: ByteOffset,
    pub(super) count: u64,
}

/// Advice whose file may become known only later.
#[derive(Clone, Copy)]
pub(super) struct Advice {
    pub(super) seq: u64,
    pub(super) pid: u32,
    pub(super) descriptor: u64,
    pub(super) code: u64,
    pub(super) pos: u64,
    pub(super) count: u64,
}

/// Descriptors and running calls of all threads.
#[derive(Default)]
pub(super) struct Syscalls {
    running: FxHashMap<u32, Running>,
    descriptors: FxHashMap<(u32, u64), Descriptor>,
    opened: u64,
    pub(super) advice: Vec<Advice>,
}

impl Syscalls {
    pub(super) fn enter(&mut self, pid: u32, call: Syscall, args: [u64; 6], seq: u64) {
        self.running.insert(pid, Running { call, args, seq, claimed: false });
        if call == Syscall::Fadvise64 {
            let descriptor = self.descriptor(pid, args[0]).id;
            let [_, pos, count, code, ..] = args;
            self.advice.push(Advice { seq, pid, descriptor, code, pos, count });
        }
    }

    pub(super) fn exit(&mut self, pid: u32, ret: i64) {
        let Some(running) = self.running.remove(&pid) else {
            return;
        };
        let Ok(ret) = u64::try_from(ret) else { return };
        match running.call {
            Syscall::Openat => {
                self.opened += 1;
                let fresh = Descriptor { id: self.opened, pos: 0 };
                self.descriptors.insert((pid, ret), fresh);
            }
            Syscall::Read | Syscall::Readv => self.descriptor(pid, running.args[0]).pos += ret,
            Syscall::Lseek => self.descriptor(pid, running.args[0]).pos = ret,
            _ => {}
        }
    }

    fn descriptor(&mut self, pid: u32, fd: u64) -> &mut Descriptor {
        self.descriptors.entry((pid, fd)).or_insert_with(|| {
            self.opened += 1;
            Descriptor { id: self.opened, pos: 0 }
        })
    }

    /// The read that thread `pid` is in, the first time it is asked for. `page` is where the events
    /// place it, which decides for a descriptor whose position is not known.
    pub(super) fn claim_read(&mut self, pid: u32, page: PageIndex) -> Option<ReadCall> {
        let running = self.running.get_mut(&pid).filter(|running| !running.claimed)?;
        let Running { call, args, seq, .. } = *running;
        let (count, pos) = match call {
            Syscall::Read => (args[2], None),
            Syscall::Pread64 => (args[2], Some(args[3])),
            _ => return None,
        };
        running.claimed = true;
        let count = count.min(READ_BYTES_MAX);
        let pos = pos.map(|pos: u64| pos.min(i64::MAX.cast_unsigned() - READ_BYTES_MAX));
        let descriptor = self.descriptor(pid, args[0]);
        let pos = match pos {
            Some(pos) => pos,
            None if within(descriptor.pos, count, page) => descriptor.pos,
            None => {
                descriptor.pos = page.offset().0;
                descriptor.pos
            }
        };
        Some(ReadCall { seq, descriptor: descriptor.id, pos: ByteOffset(pos), count })
    }
}

/// Whether a read of `count` bytes at `pos` covers `page`. A mark it meets may lie well inside.
fn within(pos: u64, count: u64, page: PageIndex) -> bool {
    (ByteOffset(pos).page()..=ByteOffset(pos.saturating_add(count)).page()).contains(&page)
}
