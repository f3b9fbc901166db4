//! A built object in this process: the calls of `shim/abi.h`.
#![expect(unsafe_code, reason = "calls into the object built from the tree")]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi::{ABI, Access, RawCrash, RawDecision, RawSettings, RawStop};
use crate::error::{Error, Result};

type Shim = c_void;

/// The object's functions; they live as long as the library.
pub(crate) struct Object {
    new: unsafe extern "C" fn(*const RawSettings) -> *mut Shim,
    free: unsafe extern "C" fn(*mut Shim),
    open: unsafe extern "C" fn(*mut Shim) -> i64,
    replay: unsafe extern "C" fn(*mut Shim, *const Access, usize, *const AtomicU64) -> usize,
    decisions: unsafe extern "C" fn(*mut Shim, *mut usize) -> *const RawDecision,
    stopped: unsafe extern "C" fn(*const Shim) -> *const RawStop,
    warnings: unsafe extern "C" fn(*const Shim, *mut *const RawStop) -> u64,
    guard: unsafe extern "C" fn(*mut RawCrash) -> i32,
    _library: Library,
}

impl Object {
    /// Loads an object that [`crate::Build`] made and checked.
    pub(crate) fn load(path: &Path) -> Result<Arc<Self>> {
        let failed =
            |e: libloading::Error| Error::Load { path: path.to_owned(), message: e.to_string() };
        // SAFETY: the object has no constructors: `inspect` refuses one that does.
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
        // SAFETY: the types are those of shim/abi.h, which is compiled into every object; the first
        // call checks that its version is this one.
        unsafe {
            let abi: unsafe extern "C" fn() -> u32 =
                *library.get(b"kshim_abi\0").map_err(failed)?;
            if abi() != ABI {
                return Err(Error::Load {
                    path: path.to_owned(),
                    message: format!("interface {} is not {ABI}", abi()),
                });
            }
            Ok(Arc::new(Self {
                new: *library.get(b"kshim_new\0").map_err(failed)?,
                free: *library.get(b"kshim_free\0").map_err(failed)?,
                open: *library.get(b"kshim_open\0").map_err(failed)?,
                replay: *library.get(b"kshim_replay\0").map_err(failed)?,
                decisions: *library.get(b"kshim_decisions\0").map_err(failed)?,
                stopped: *library.get(b"kshim_stopped\0").map_err(failed)?,
                warnings: *library.get(b"kshim_warnings\0").map_err(failed)?,
                guard: *library.get(b"kshim_guard\0").map_err(failed)?,
                _library: library,
            }))
        }
    }

    /// Makes signals end this process after a note in `crash`. For a worker, which has nothing else to do.
    pub(crate) fn guard(&self, crash: NonNull<RawCrash>) -> bool {
        // SAFETY: the note's memory is mapped until the process ends.
        unsafe { (self.guard)(crash.as_ptr()) == 0 }
    }
}

/// One `struct kshim`: a file's page cache and its open files.
pub(crate) struct RawInstance {
    shim: NonNull<Shim>,
    object: Arc<Object>,
}

// SAFETY: the shim keeps an instance's state in the instance; what it keeps per thread is set anew
// by every call. It is not Sync: calls need `&mut self`.
unsafe impl Send for RawInstance {}

impl RawInstance {
    pub(crate) fn new(object: &Arc<Object>, settings: &RawSettings) -> Option<Self> {
        // SAFETY: the settings are only read.
        let shim = NonNull::new(unsafe { (object.new)(settings) })?;
        Some(Self { shim, object: Arc::clone(object) })
    }

    /// The new file's id, or nothing when it stopped.
    pub(crate) fn open(&mut self) -> Option<u32> {
        // SAFETY: the shim is live until `drop`.
        let id = unsafe { (self.object.open)(self.shim.as_ptr()) };
        u32::try_from(id).ok()
    }

    /// How many of the accesses were replayed.
    pub(crate) fn replay(&mut self, accesses: &[Access], progress: &AtomicU64) -> usize {
        // SAFETY: pointer and length are one slice; an atomic has the layout of its integer and may
        // be written through a shared reference.
        unsafe {
            (self.object.replay)(self.shim.as_ptr(), accesses.as_ptr(), accesses.len(), progress)
        }
    }

    pub(crate) fn decisions(&mut self) -> &[RawDecision] {
        let mut len = 0;
        // SAFETY: the shim gives its log and its length, untouched until the next call, which needs
        // `&mut self` again. An empty log may be null.
        unsafe {
            let first = (self.object.decisions)(self.shim.as_ptr(), &raw mut len);
            if first.is_null() { &[] } else { std::slice::from_raw_parts(first, len) }
        }
    }

    pub(crate) fn stopped(&self) -> &RawStop {
        // SAFETY: points into the live shim, which changes it only in calls that need `&mut self`.
        unsafe { &*(self.object.stopped)(self.shim.as_ptr()) }
    }

    /// How many `WARN_ON`s fired, and the first.
    pub(crate) fn warnings(&self) -> (u64, &RawStop) {
        let mut first = std::ptr::null();
        // SAFETY: the shim sets `first` to memory of its own, as above.
        unsafe {
            let count = (self.object.warnings)(self.shim.as_ptr(), &raw mut first);
            (count, &*first)
        }
    }
}

impl Drop for RawInstance {
    fn drop(&mut self) {
        // SAFETY: made by `new` of the same object and freed once.
        unsafe { (self.object.free)(self.shim.as_ptr()) }
    }
}
