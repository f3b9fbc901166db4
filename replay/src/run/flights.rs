//! Requests under way, and the folios that wait for more than one of them.

use traces::units::{PageIndex, SECTORS_PER_PAGE};

use crate::block::Request;
use crate::page_cache::Folio;

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    /// Index of the access that caused it.
    pub(super) access: u32,
    /// Its place in the history of the run, once the device has it.
    pub(super) recorded: Option<u32>,
    /// Pages of folios that this request alone reads.
    own: (PageIndex, PageIndex),
    /// Folios that other requests read too: the first and the last one of this request.
    shared: [Option<u32>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Shared {
    folio: Folio,
    requests_left: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Flights {
    under_way: Vec<Flight>,
    free: Vec<u32>,
    shared: Vec<Shared>,
    shared_free: Vec<u32>,
}

fn end_of(request: &Request) -> PageIndex {
    request.page + request.sectors.div_ceil(SECTORS_PER_PAGE)
}

impl Flights {
    pub(super) fn get(&self, id: u32) -> &Flight {
        &self.under_way[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Flight {
        &mut self.under_way[id as usize]
    }

    /// Takes on the requests of one submission, whose pages follow each other; appends their ids.
    /// Returns how many of the folios they read; the others lie beyond the end of the file.
    pub(super) fn begin(
        &mut self,
        access: u32,
        folios: &[Folio],
        file_pages: u64,
        requests: &[Request],
        ids: &mut Vec<u32>,
    ) -> usize {
        let mut read = 0;
        // A folio that the request before ended in the middle of.
        let mut open: Option<u32> = None;
        for request in requests {
            let end = end_of(request);
            let first_shared = open;
            let mut own = (request.page, request.page);
            if let Some(shared) = open {
                let shared = &mut self.shared[shared as usize];
                shared.requests_left += 1;
                let folio_end = PageIndex(shared.folio.end().0.min(file_pages));
                own = (folio_end, folio_end);
                if folio_end <= end {
                    open = None;
                }
            }
            let mut last_shared = None;
            while open.is_none()
                && let Some(&folio) = folios.get(read)
                && folio.index < end
            {
                read += 1;
                if folio.end().0.min(file_pages) <= end.0 {
                    own = (own.0.min(folio.index), folio.end());
                } else {
                    open = Some(self.share(folio));
                    last_shared = open;
                }
            }
            let shared = [first_shared, last_shared];
            ids.push(self.add(Flight { request: *request, access, recorded: None, own, shared }));
        }
        read
    }

    fn share(&mut self, folio: Folio) -> u32 {
        let shared = Shared { folio, requests_left: 1 };
        insert(&mut self.shared, &mut self.shared_free, shared)
    }

    fn add(&mut self, flight: Flight) -> u32 {
        insert(&mut self.under_way, &mut self.free, flight)
    }

    /// A request has completed: the ranges of pages that are now uptodate, some of them empty.
    pub(super) fn end(&mut self, id: u32) -> [(PageIndex, PageIndex); 3] {
        let Flight { own, shared: [first, last], .. } = self.under_way[id as usize];
        self.free.push(id);
        [self.end_part(first), self.end_part(last), own]
    }

    /// One request less for a folio that several read; its pages if that was the last one.
    fn end_part(&mut self, shared: Option<u32>) -> (PageIndex, PageIndex) {
        let nothing = (PageIndex(0), PageIndex(0));
        let Some(shared) = shared else { return nothing };
        let Shared { folio, requests_left } = &mut self.shared[shared as usize];
        *requests_left -= 1;
        if *requests_left > 0 {
            return nothing;
        }
        self.shared_free.push(shared);
        (folio.index, folio.end())
    }
}

fn insert<T>(slots: &mut Vec<T>, free: &mut Vec<u32>, item: T) -> u32 {
    if let Some(slot) = free.pop() {
        slots[slot as usize] = item;
        return slot;
    }
    slots.push(item);
    (slots.len() - 1) as u32
}
