//! Mapped files that other programs may truncate without ending this process.
//!
//! Reading a mapped page that the file no longer has raises SIGBUS. While any file is mapped here, a signal handler replaces the missing pages with zeros and
//! records which file was truncated. Signals about other memory are passed on to the previous handler. Reading with `pread` would need no handler, but would
//! copy every byte in each pass.
#![expect(
    unsafe_code,
    reason = "a mapped file of another program needs a handler of SIGBUS, and no safe call sets one"
)]

use libc::{c_int, c_void, sigaction, siginfo_t};
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of files that are mapped at once. By default, the kernel allows a process 65,530 mappings.
const MAX_FILES: usize = 1 << 14;

/// A mapping as the signal handler sees it. Both bounds are 0 if the slot is free.
struct Slot {
    /// Number of changes begun and completed, so it is odd during a change.
    changes: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
}

impl Slot {
    /// Returns the end of the mapping if it contains the address. Another thread may change the slot meanwhile, but the thread whose access failed does not
    /// release its own mapping.
    fn end_if_contains(&self, address: usize) -> Option<usize> {
        let changes = self.changes.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        let is_whole = changes.is_multiple_of(2) && self.changes.load(Ordering::Acquire) == changes;
        (is_whole && start <= address && address < end).then_some(end)
    }

    /// Sets the bounds of the mapping. Only one thread at a time may call this.
    fn set(&self, start: usize, end: usize) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.is_cut.store(false, Ordering::Relaxed);
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn clear(&self) {
        self.set(0, 0);
    }
}

static SLOTS: [Slot; MAX_FILES] = [const {
    Slot {
        changes: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_cut: AtomicBool::new(false),
    }
}; MAX_FILES];

/// Number of slots that were ever used. They are the first ones.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Address of the handler before ours, as the kernel stores it.
static OLD_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// True if the handler before ours was set with `SA_SIGINFO`.
static OLD_HAS_SIGINFO: AtomicBool = AtomicBool::new(false);

/// Page size in bytes, or 0 before the handler is set. A signal handler may not call `sysconf`.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    free: Vec::new(),
    old: None,
});

struct Registry {
    /// Numbers of slots that were used and are free again.
    free: Vec<usize>,
    /// Action of the signal before our handler was set, while it is set.
    old: Option<sigaction>,
}

/// A mapped file that other programs may write and truncate.
pub struct Watched {
    // This is the first field, so that it is dropped first: the handler must not touch memory that is already unmapped.
    slot: Registered,
    map: Mmap,
}

struct Registered(usize);

impl Watched {
    /// Maps a file. Returns `None` if this fails or too many files are mapped already.
    pub(crate) fn map(file: &File) -> Option<Watched> {
        // SAFETY: the mapping is read-only. If another program changes the bytes, no code relies on them: data that was read counts only if the file's
        // status or checksum is unchanged afterwards, and truncated pages become zeros (see the module doc).
        let map = unsafe { Mmap::map(file) }.ok()?;
        let slot = Registered::new(&map)?;
        Some(Watched { slot, map })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns true if the file was truncated since it was mapped.
    pub(crate) fn is_cut(&self) -> bool {
        SLOTS[self.slot.0].is_cut.load(Ordering::Acquire)
    }

    /// Releases the pages of a range from memory. They are read from the file again on the next access.
    pub(crate) fn release(&self, start: usize, end: usize) {
        release(&self.map, start, end);
    }
}

/// Releases the pages of a range of a mapped file from memory. They are read from the file again on the next access.
pub(crate) fn release(map: &Mmap, start: usize, end: usize) {
    let len = end.min(map.len()).saturating_sub(start);
    if len > 0 {
        let advice = UncheckedAdvice::DontNeed;
        // SAFETY: this is a read-only mapping of a file, so the pages are read from the file again with the same content.
        let _ = unsafe { map.unchecked_advise_range(advice, start, len) };
    }
}

impl Registered {
    /// Registers a mapping with the handler, and sets the handler if this is the only mapping.
    fn new(map: &Mmap) -> Option<Registered> {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match registry.free.pop() {
            Some(slot) => slot,
            None => {
                let next = USED.load(Ordering::Relaxed);
                if next == MAX_FILES {
                    return None;
                }
                USED.store(next + 1, Ordering::Release);
                next
            }
        };
        if registry.old.is_none() {
            registry.old = set_handler();
        }
        let start = map.as_ptr() as usize;
        SLOTS[slot].set(start, start + map.len());
        Some(Registered(slot))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        SLOTS[self.0].clear();
        registry.free.push(self.0);
        if registry.free.len() == USED.load(Ordering::Relaxed)
            && let Some(old) = registry.old.take()
        {
            restore_handler(&old);
        }
    }
}

/// Sets our handler. Returns the previous action.
fn set_handler() -> Option<sigaction> {
    // SAFETY: this only returns a constant of the system.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_bytes = usize::try_from(page_bytes).unwrap_or(0);
    PAGE_BYTES.store(page_bytes, Ordering::Relaxed);
    let old = current_action()?;
    // This must be stored before our handler is set, because our handler calls the old one.
    OLD_HANDLER.store(old.sa_sigaction, Ordering::Relaxed);
    let has_siginfo = old.sa_flags & libc::SA_SIGINFO != 0;
    OLD_HAS_SIGINFO.store(has_siginfo, Ordering::Release);
    let ours = sigaction {
        sa_sigaction: our_handler(),
        sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK,
        ..old
    };
    // SAFETY: the handler has the signature that SA_SIGINFO requires, and calls only mmap, sigaction and the previous handler.
    let set = unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, null_mut()) };
    (set == 0).then_some(old)
}

/// Returns the action that the process now takes on SIGBUS, or `None` if the system call fails.
fn current_action() -> Option<sigaction> {
    let mut action = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the current one to `action`, which has room for it.
    let status = unsafe { libc::sigaction(libc::SIGBUS, null(), action.as_mut_ptr()) };
    // SAFETY: zeros are a valid action, the default one. The call has overwritten it with another one or not at all.
    let action = unsafe { action.assume_init() };
    (status == 0).then_some(action)
}

fn our_handler() -> usize {
    on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize
}

/// Restores the action `old` for SIGBUS, unless other code has replaced our handler by its own
/// since.
fn restore_handler(old: &sigaction) {
    if current_action().is_some_and(|action| action.sa_sigaction == our_handler()) {
        // SAFETY: this is the action that was set before ours.
        unsafe { libc::sigaction(libc::SIGBUS, old, null_mut()) };
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid description of the signal to a handler that was set with SA_SIGINFO.
    let siginfo = unsafe { &*info };
    // SAFETY: a SIGBUS from the kernel has an address. One that another process sent has a different field there, and `si_code` below excludes it.
    let address = unsafe { siginfo.si_addr() } as usize;
    for slot in &SLOTS[..USED.load(Ordering::Acquire)] {
        if siginfo.si_code > 0
            && let Some(end) = slot.end_if_contains(address)
            && map_zeros(address, end)
        {
            slot.is_cut.store(true, Ordering::Release);
            return;
        }
    }
    call_old_handler(signal, info, context);
}

/// Replaces the pages of a mapping from `address` on with zeros. Returns false if this fails.
fn map_zeros(address: usize, end: usize) -> bool {
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    if page_bytes == 0 {
        return false;
    }
    let from = address / page_bytes * page_bytes;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the pages belong to a registered mapping of ours, so they are still mapped, and they stay readable.
    let mapped = unsafe {
        libc::mmap(
            from as *mut c_void,
            end - from,
            libc::PROT_READ,
            flags,
            -1,
            0,
        )
    };
    mapped != libc::MAP_FAILED
}

/// Passes a SIGBUS that does not concern our mappings to the handler that was set before ours. If
/// there was none, or SIGBUS was ignored, sets the default action, which ends the process when the
/// instruction fails again.
fn call_old_handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let has_siginfo = OLD_HAS_SIGINFO.load(Ordering::Acquire);
    let handler = OLD_HANDLER.load(Ordering::Relaxed);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: zeros are the default action. It takes effect when the instruction is executed again and fails again.
        let default = unsafe { MaybeUninit::<sigaction>::zeroed().assume_init() };
        // SAFETY: the action is completely initialized.
        unsafe { libc::sigaction(signal, &raw const default, null_mut()) };
    } else if has_siginfo {
        // SAFETY: the code that set this address with SA_SIGINFO guarantees this signature.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: the code that set this address without SA_SIGINFO guarantees this signature.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LEN: usize = 100_000;

    fn slot(start: usize, end: usize) -> Slot {
        Slot {
            changes: AtomicUsize::new(0),
            start: AtomicUsize::new(start),
            end: AtomicUsize::new(end),
            is_cut: AtomicBool::new(false),
        }
    }

    #[test]
    fn issue_19_a_slot_contains_no_address_during_a_change() {
        let slot = slot(5000, 9000);
        assert_eq!(slot.end_if_contains(6000), Some(9000));
        let outside = [4999, 9000].map(|address| slot.end_if_contains(address));
        assert_eq!(outside, [None, None]);
        slot.changes.store(1, Ordering::Relaxed);
        assert_eq!(slot.end_if_contains(6000), None);
        slot.clear();
        assert_eq!(slot.end_if_contains(100), None);
    }

    /// An address between two mappings belongs to neither, whichever of them the slot has at that moment.
    #[test]
    fn issue_19_the_bounds_of_two_mappings_are_never_mixed() {
        let (slot, is_done) = (slot(0, 0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    for (start, end) in [(1000, 2000), (3000, 4000)] {
                        slot.set(start, end);
                        slot.clear();
                    }
                }
                is_done.store(true, Ordering::Relaxed);
            });
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(slot.end_if_contains(2500), None);
                assert!(matches!(slot.end_if_contains(1500), None | Some(2000)));
            }
        });
    }

    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; LEN]).unwrap();
        file
    }

    fn handler() -> usize {
        let mut action = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: this only writes the current action.
        unsafe { libc::sigaction(libc::SIGBUS, null(), action.as_mut_ptr()) };
        // SAFETY: zeros are a valid action.
        unsafe { action.assume_init() }.sa_sigaction
    }

    #[test]
    fn issue_19_truncated_bytes_read_as_zeros_and_are_reported() {
        let before = handler();
        let (file, other) = (file(), file());
        let (watched, intact) = (Watched::map(&file).unwrap(), Watched::map(&other).unwrap());
        assert_eq!(handler(), our_handler());
        assert!(!watched.is_cut());
        file.set_len(10).unwrap();
        let bytes = watched.bytes();
        assert!(bytes.iter().skip(1 << 16).all(|byte| *byte == 0));
        assert_eq!((bytes.len(), &bytes[..10]), (LEN, &b"xxxxxxxxxx"[..]));
        assert!(watched.is_cut() && !intact.is_cut());
        drop((watched, intact));
        assert_eq!(handler(), before);
    }
}
