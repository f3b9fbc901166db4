//! Proposed changes, stacked on a generation or on each other.

use std::sync::Arc;

use super::{Policy, Rules};
use crate::page_cache::Folio;
use crate::readahead::{ForcedFill, Readahead};

/// A change: the entry points it replaces. The others are the base's.
pub(super) trait Change: Send + Sync + Default + 'static {
    fn sync_ra(&self, base: &dyn Policy, rac: &mut Readahead<'_>, req_count: u64) {
        base.sync_ra(rac, req_count);
    }

    fn async_ra(&self, base: &dyn Policy, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        base.async_ra(rac, folio, req_count);
    }

    fn begin_forced(
        &self,
        base: &dyn Policy,
        rac: &mut Readahead<'_>,
        nr_to_read: u64,
    ) -> Option<ForcedFill> {
        base.begin_forced(rac, nr_to_read)
    }

    fn end_forced(&self, base: &dyn Policy, rac: &mut Readahead<'_>) {
        base.end_forced(rac);
    }
}

/// The generation a change stands on when its name stands alone.
pub(super) const DEFAULT_BASE: &str = "linux-6.18";

/// Stacks a change of this name.
pub(super) fn stack<C: Change>(base: Arc<dyn Policy>, name: &str) -> Arc<dyn Policy> {
    let name = if base.name() == DEFAULT_BASE {
        name.to_owned()
    } else {
        format!("{}+{name}", base.name())
    };
    Arc::new(Stacked { name, base, change: C::default() })
}

struct Stacked<C> {
    name: String,
    base: Arc<dyn Policy>,
    change: C,
}

impl<C: Change> Policy for Stacked<C> {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> Rules {
        self.base.rules()
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        self.change.sync_ra(&*self.base, rac, req_count);
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        self.change.async_ra(&*self.base, rac, folio, req_count);
    }

    fn ra_order(&self, rac: &mut Readahead<'_>, order: u32) {
        self.base.ra_order(rac, order);
    }

    fn begin_forced(&self, rac: &mut Readahead<'_>, nr_to_read: u64) -> Option<ForcedFill> {
        self.change.begin_forced(&*self.base, rac, nr_to_read)
    }

    fn end_forced(&self, rac: &mut Readahead<'_>) {
        self.change.end_forced(&*self.base, rac);
    }
}
