//! Names that many rows share, and what they stand for.

use columns::Text;
use rustc_hash::FxHashMap;
use traces::capture::Comms;
use traces::event::{Comm, Device, Rwbs};

/// Most devices remembered; beyond these, names are made and read again for every row.
const DEVICES_MAX: usize = 1024;

/// Every combination of the flags of [`Rwbs`], by its bits.
const RWBS: [&str; 16] = [
    "N", "R", "W", "RW", "NA", "RA", "WA", "RWA", "NM", "RM", "WM", "RWM", "NAM", "RAM", "WAM",
    "RWAM",
];

/// Names met so far.
#[derive(Default)]
pub(super) struct Names {
    devices: FxHashMap<Device, Text>,
    /// The thread names of the capture that is written, by [`Comm`].
    texts: Vec<Text>,
    /// The thread names of the capture that is read.
    pub(super) comms: Comms,
    /// The last name looked up, which the next one usually is as well.
    last_comm: Option<(Text, Comm)>,
    last_device: Option<(Text, Device)>,
}

impl Names {
    /// The name of a thread.
    pub(super) fn text(&mut self, comm: Comm, comms: &Comms) -> Text {
        for id in self.texts.len()..comms.count() {
            self.texts.push(Text::from(comms.name(Comm(id as u32))));
        }
        let known = self.texts.get(comm.0 as usize);
        known.cloned().unwrap_or_else(|| Text::from(comms.name(comm)))
    }

    /// The thread that is called so.
    pub(super) fn comm(&mut self, text: &Text) -> Comm {
        match &self.last_comm {
            Some((last, comm)) if last == text => *comm,
            _ => {
                let comm = self.comms.intern(text.as_str());
                self.last_comm = Some((text.clone(), comm));
                comm
            }
        }
    }

    /// `MAJOR:MINOR`.
    pub(super) fn device(&mut self, device: Device) -> Text {
        if let Some(text) = self.devices.get(&device) {
            return text.clone();
        }
        let text = Text::from(&*device.to_string());
        if self.devices.len() < DEVICES_MAX {
            self.devices.insert(device, text.clone());
        }
        text
    }

    /// The device that is called so.
    pub(super) fn find_device(&mut self, text: &Text) -> Option<Device> {
        if let Some((last, device)) = &self.last_device
            && last == text
        {
            return Some(*device);
        }
        let (major, minor) = text.as_str().split_once(':')?;
        let device = Device { major: major.parse().ok()?, minor: minor.parse().ok()? };
        self.last_device = Some((text.clone(), device));
        Some(device)
    }

    /// The kernel's letters: `R` a read, `W` a write, `N` neither, then `A` readahead, `M` metadata.
    pub(super) fn rwbs(rwbs: Rwbs) -> Text {
        let Rwbs { read, write, ahead, meta } = rwbs;
        let bits = [read, write, ahead, meta].map(usize::from);
        Text::fixed(RWBS[bits[0] | bits[1] << 1 | bits[2] << 2 | bits[3] << 3])
    }

    /// The flags behind the letters.
    pub(super) fn find_rwbs(text: &Text) -> Option<Rwbs> {
        let bits = RWBS.iter().position(|letters| *letters == text.as_str())?;
        let bit = |n: usize| bits >> n & 1 == 1;
        Some(Rwbs { read: bit(0), write: bit(1), ahead: bit(2), meta: bit(3) })
    }
}
