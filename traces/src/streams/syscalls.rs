//! Reads and advice from system calls: which file a descriptor stands for.
//!
//! A call's arguments name a descriptor and the events between its enter and
//! exit name the file, so the first such call ties one to the other. Threads
//! share descriptors or have copies of them, as `task_newtask` tells.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::builder::READ_BYTES_MAX;
use crate::event::{Event, Syscall};
use crate::units::{ByteOffset, PageIndex, Time};

/// A call that has not returned.
#[derive(Clone, Copy)]
struct Running {
    call: Syscall,
    args: [u64; 6],
    seq: u64,
    time: Time,
    claimed: bool,
}

/// An open file (`struct file`), whatever descriptors name it.
#[derive(Clone, Copy, Default)]
struct OpenFile {
    id: u64,
    pos: u64,
}

/// The open files of one or more threads by descriptor (`files_struct`). One open file may be in more
/// than one.
type Table = FxHashMap<u64, Rc<Cell<OpenFile>>>;

/// A new thread has the descriptors of its maker, not a copy of them.
const CLONE_FILES: u64 = 0x400;
/// What fcntl(2) is asked for to get another descriptor of an open file.
const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// A read that a thread is in, as its system call or another event states it.
#[derive(Clone, Copy)]
pub(super) struct ReadCall {
    pub(super) seq: u64,
    pub(super) time: Time,
    /// The open file, where a call tells of it.
    pub(super) descriptor: Option<u64>,
    /// First byte; for calls without a position, where the descriptor's last read ended.
    pub(super) pos: ByteOffset,
    pub(super) count: u64,
}

/// Advice on a descriptor.
#[derive(Clone, Copy)]
pub(super) struct Advice {
    pub(super) seq: u64,
    pub(super) event: Event,
    pub(super) descriptor: u64,
    pub(super) code: u64,
    pub(super) pos: u64,
    pub(super) count: u64,
}

/// Advice that is kept until the file of its descriptor is known. Programs give one or two.
const ADVICE_MAX: usize = 64;

/// Descriptors and running calls of all threads.
#[derive(Default)]
pub(super) struct Syscalls {
    running: FxHashMap<u32, Running>,
    /// By thread. Those that existed before the capture may have one in common all the same; nothing
    /// tells.
    tables: FxHashMap<u32, Rc<RefCell<Table>>>,
    opened: u64,
    /// By descriptor, whose file is not known yet.
    advice: FxHashMap<u64, VecDeque<Advice>>,
}

impl Syscalls {
    /// A thread enters a call; returns what it advises.
    pub(super) fn enter(
        &mut self,
        seq: u64,
        event: &Event,
        call: Syscall,
        args: [u64; 6],
    ) -> Option<Advice> {
        let pid = event.pid;
        let time = event.time;
        self.running.insert(pid, Running { call, args, seq, time, claimed: false });
        if call == Syscall::Close {
            // Another thread may open a file behind the descriptor before this call returns.
            self.table(pid).borrow_mut().remove(&args[0]);
        }
        (call == Syscall::Fadvise64).then(|| {
            let descriptor = self.open_file(pid, args[0]).get().id;
            let [_, pos, count, code, ..] = args;
            Advice { seq, event: *event, descriptor, code, pos, count }
        })
    }

    /// Keeps advice until the file of its descriptor is known.
    pub(super) fn keep(&mut self, advice: Advice) {
        let kept = self.advice.entry(advice.descriptor).or_default();
        kept.push_back(advice);
        if kept.len() > ADVICE_MAX {
            kept.pop_front();
        }
    }

    /// Takes the advice that was kept for a descriptor.
    pub(super) fn advice_on(&mut self, descriptor: u64) -> VecDeque<Advice> {
        self.advice.remove(&descriptor).unwrap_or_default()
    }

    pub(super) fn exit(&mut self, pid: u32, ret: i64) {
        let Some(running) = self.running.remove(&pid) else {
            return;
        };
        let Ok(ret) = u64::try_from(ret) else { return };
        match running.call {
            Syscall::Openat => {
                self.open(pid, ret);
            }
            Syscall::Dup | Syscall::Dup2 | Syscall::Dup3 => {
                self.duplicate(pid, running.args[0], ret);
            }
            Syscall::Fcntl if matches!(running.args[1], F_DUPFD | F_DUPFD_CLOEXEC) => {
                self.duplicate(pid, running.args[0], ret);
            }
            Syscall::Read | Syscall::Readv => {
                self.seek(pid, running.args[0], |pos| pos.saturating_add(ret));
            }
            Syscall::Lseek => self.seek(pid, running.args[0], |_| ret),
            _ => {}
        }
    }

    /// Thread `pid` makes `child`.
    pub(super) fn new_task(&mut self, pid: u32, child: u32, clone_flags: u64) {
        let table = self.table(pid);
        let table = if clone_flags & CLONE_FILES == 0 { Rc::new((*table).clone()) } else { table };
        self.tables.insert(child, table);
    }

    fn table(&mut self, pid: u32) -> Rc<RefCell<Table>> {
        Rc::clone(self.tables.entry(pid).or_default())
    }

    /// A new open file behind a descriptor.
    fn open(&mut self, pid: u32, fd: u64) -> Rc<Cell<OpenFile>> {
        self.opened += 1;
        let file = Rc::new(Cell::new(OpenFile { id: self.opened, pos: 0 }));
        self.table(pid).borrow_mut().insert(fd, Rc::clone(&file));
        file
    }

    fn open_file(&mut self, pid: u32, fd: u64) -> Rc<Cell<OpenFile>> {
        let known = self.table(pid).borrow().get(&fd).cloned();
        known.unwrap_or_else(|| self.open(pid, fd))
    }

    /// Another descriptor of an open file.
    fn duplicate(&mut self, pid: u32, fd: u64, other: u64) {
        let file = self.open_file(pid, fd);
        self.table(pid).borrow_mut().insert(other, file);
    }

    fn seek(&mut self, pid: u32, fd: u64, to: impl Fn(u64) -> u64) {
        let file = self.open_file(pid, fd);
        let OpenFile { id, pos } = file.get();
        file.set(OpenFile { id, pos: to(pos) });
    }

    /// The descriptor that the call of thread `pid` reads from, if it does.
    fn read_from(&self, pid: u32) -> Option<u64> {
        let Running { call, args, .. } = self.running.get(&pid)?;
        match call {
            Syscall::Read | Syscall::Pread64 | Syscall::Readv | Syscall::Preadv => Some(args[0]),
            Syscall::Sendfile64 => Some(args[1]),
            _ => None,
        }
    }

    /// Whether thread `pid` is in a call that reads.
    pub(super) fn is_reading(&self, pid: u32) -> bool {
        self.read_from(pid).is_some()
    }

    /// The open file of the call that thread `pid` is in, if it reads from one.
    pub(super) fn reading(&mut self, pid: u32) -> Option<u64> {
        let fd = self.read_from(pid)?;
        Some(self.open_file(pid, fd).get().id)
    }

    /// The read that thread `pid` is in, the first time it is asked for. `page` is where the events
    /// place it, which decides for a descriptor whose position is not known.
    pub(super) fn claim_read(&mut self, pid: u32, page: PageIndex) -> Option<ReadCall> {
        let running = self.running.get_mut(&pid).filter(|running| !running.claimed)?;
        let Running { call, args, seq, time, .. } = *running;
        let (count, pos) = match call {
            Syscall::Read => (args[2], None),
            Syscall::Pread64 => (args[2], Some(args[3])),
            _ => return None,
        };
        running.claimed = true;
        let count = count.min(READ_BYTES_MAX);
        let pos = pos.map(|pos: u64| pos.min(i64::MAX.cast_unsigned() - READ_BYTES_MAX));
        let file = self.open_file(pid, args[0]);
        let OpenFile { id, pos: known } = file.get();
        let pos = match pos {
            Some(pos) => pos,
            None if within(known, count, page) => known,
            None => {
                file.set(OpenFile { id, pos: page.offset().0 });
                page.offset().0
            }
        };
        Some(ReadCall { seq, time, descriptor: Some(id), pos: ByteOffset(pos), count })
    }
}

/// Whether a read of `count` bytes at `pos` covers `page`. A mark it meets may lie well inside.
fn within(pos: u64, count: u64, page: PageIndex) -> bool {
    (ByteOffset(pos).page()..=ByteOffset(pos.saturating_add(count)).page()).contains(&page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Comm, EventKind};

    #[derive(Default)]
    struct Calls(Syscalls);

    impl Calls {
        fn enter(&mut self, pid: u32, call: Syscall, args: [u64; 6]) {
            let kind = EventKind::SyscallEnter { call, args };
            let event = Event { time: Time(1), cpu: 0, pid, comm: Comm(0), kind };
            self.0.enter(1, &event, call, args);
        }

        fn call(&mut self, pid: u32, call: Syscall, args: [u64; 6], ret: i64) {
            self.enter(pid, call, args);
            self.0.exit(pid, ret);
        }

        fn open(&mut self, pid: u32, fd: i64) {
            self.call(pid, Syscall::Openat, [0; 6], fd);
        }

        /// The open file that a read of `fd` goes through.
        fn read(&mut self, pid: u32, fd: u64) -> u64 {
            self.enter(pid, Syscall::Pread64, [fd, 0, 4096, 0, 0, 0]);
            let file = self.0.reading(pid).expect("it reads");
            self.0.exit(pid, 4096);
            file
        }
    }

    #[test]
    fn threads_share_descriptors_and_processes_have_copies() {
        let mut calls = Calls::default();
        calls.open(10, 3);
        let first = calls.read(10, 3);
        calls.0.new_task(10, 11, CLONE_FILES);
        calls.0.new_task(11, 20, 0);
        assert_eq!([calls.read(11, 3), calls.read(20, 3)], [first; 2]);

        calls.call(20, Syscall::Close, [3, 0, 0, 0, 0, 0], 0);
        calls.open(20, 3);
        assert_ne!(calls.read(20, 3), first);
        assert_eq!(calls.read(10, 3), first);

        calls.open(11, 4);
        assert_eq!(calls.read(10, 4), calls.read(11, 4));
        assert_ne!(calls.read(20, 4), calls.read(10, 4));
    }

    #[test]
    fn a_duplicate_is_the_same_open_file() {
        let mut calls = Calls::default();
        calls.open(10, 3);
        let file = calls.read(10, 3);
        calls.call(10, Syscall::Dup2, [3, 0, 0, 0, 0, 0], 0);
        calls.call(10, Syscall::Fcntl, [3, F_DUPFD_CLOEXEC, 0, 0, 0, 0], 12);
        calls.call(10, Syscall::Fcntl, [3, 1, 0, 0, 0, 0], 13);
        calls.call(10, Syscall::Close, [3, 0, 0, 0, 0, 0], 0);
        assert_eq!([calls.read(10, 0), calls.read(10, 12)], [file; 2]);
        assert_ne!(calls.read(10, 13), file);
        assert_ne!(calls.read(10, 3), file);
    }

    #[test]
    fn the_position_belongs_to_the_open_file() {
        let mut calls = Calls::default();
        calls.open(10, 3);
        calls.0.new_task(10, 20, 0);
        calls.call(10, Syscall::Read, [3, 0, 65536, 0, 0, 0], 65536);
        calls.enter(20, Syscall::Read, [3, 0, 4096, 0, 0, 0]);
        let read = calls.0.claim_read(20, PageIndex(16)).expect("it reads");
        assert_eq!(read.pos, ByteOffset(65536));
    }
}
