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
    /// Returns the folios that no request reads, since they lie beyond the end of the file.
    pub(super) fn begin<'f>(
        &mut self,
        access: u32,
        folios: &'f [Folio],
        file_pages: u64,
        requests: &[Request],
        ids: &mut Vec<u32>,
    ) -> impl Iterator<Item = Folio> + use<'f> {
        let mut folios = folios.iter().copied().peekable();
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
                && let Some(folio) = folios.next_if(|folio| folio.index < end)
            {
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
        folios
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
        let flight = self.under_way[id as usize];
        self.free.push(id);
        let nothing = (PageIndex(0), PageIndex(0));
        let [first, last] = flight.shared.map(|shared| {
            let whole = shared.and_then(|shared| self.end_part(shared));
            whole.map_or(nothing, |folio| (folio.index, folio.end()))
        });
        [first, last, flight.own]
    }

    /// One request less for a folio that several read; the folio if that was the last one.
    fn end_part(&mut self, shared: u32) -> Option<Folio> {
        let state = &mut self.shared[shared as usize];
        state.requests_left -= 1;
        let folio = state.folio;
        (state.requests_left == 0).then(|| {
            self.shared_free.push(shared);
            folio
        })
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
