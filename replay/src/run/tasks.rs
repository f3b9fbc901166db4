//! Accesses that the policy's own code carries out, on virtual time.

use traces::access::Access;
use traces::units::{ByteOffset, PAGE_SIZE, PageIndex};

use super::{Run, SLICE_PAGES, Step};
use crate::task::{Hold, Progress, Reached, TaskAccess};

impl Run<'_, '_, '_> {
    /// One batch of a read.
    pub(super) fn read_as_task(
        &mut self,
        thread: u32,
        access: &Access,
        pos: ByteOffset,
        count: u64,
    ) -> Step {
        let cpu = self.options.cpu;
        let at = self.state(thread).pos.unwrap_or(pos);
        let what = TaskAccess::Read { pos, count };
        let step = self.task(thread, access, what, at, Hold::AfterCopies);
        let to = step.copied_to.unwrap_or(at);
        self.mark_accessed(access.open as usize, at.page(), to.page_up());
        self.state(thread).pos = Some(to);
        let copy_ns = to.0.saturating_sub(at.0).div_ceil(PAGE_SIZE) * cpu.copy_page_ns;
        let cpu_ns = copy_ns + u64::from(step.folios) * cpu.copy_folio_ns;
        match step.reached {
            Reached::Waits(folio) => Step::Wait(folio),
            Reached::Returned => Step::Done { cpu_ns },
            _ => Step::Again { cpu_ns },
        }
    }

    /// A slice of a forced readahead. Between slices other threads run, and may want the same pages.
    pub(super) fn will_need_as_task(
        &mut self,
        thread: u32,
        access: &Access,
        page: PageIndex,
        pages: u64,
    ) -> Step {
        let at = self.state(thread).pos.unwrap_or(page.offset()).page();
        let hold = Hold::BeforeInsertion { until: at + SLICE_PAGES };
        let what = TaskAccess::WillNeed { page, pages };
        let step = self.task(thread, access, what, at.offset(), hold);
        let Reached::Held { index } = step.reached else {
            let left = (page + pages).0.saturating_sub(at.0);
            return Step::Done { cpu_ns: left.min(SLICE_PAGES) * self.options.cpu.lookup_ns };
        };
        self.state(thread).pos = Some(index.offset());
        Step::Again { cpu_ns: index.0.saturating_sub(at.0) * self.options.cpu.lookup_ns }
    }

    /// Begins the task of a thread, or goes on with it from `at`.
    fn task(
        &mut self,
        thread: u32,
        access: &Access,
        what: TaskAccess,
        at: ByteOffset,
        hold: Hold,
    ) -> Progress {
        let begun = self.state(thread).pos.replace(at).is_some();
        let what = (!begun).then_some(what);
        self.machine.run_task(thread as usize, access.open as usize, what, at, hold)
    }
}
