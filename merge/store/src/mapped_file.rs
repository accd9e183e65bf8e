//! Files of others, mapped, so that one that is cut short meanwhile ends nothing.
//!
//! Reading a mapped page that its file has no more is a SIGBUS. As long as anything is mapped here a handler takes it: it puts zeros in
//! the place of what is gone and notes which file that was. Signals about other memory go on to whoever took them before. Reading with
//! `pread` instead would need no handler, but a copy of every byte in each pass.
#![expect(
    unsafe_code,
    reason = "a mapped file of others needs a handler of SIGBUS, and no safe call sets one"
)]

use libc::{c_int, c_void, sigaction, siginfo_t};
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Files that are mapped at once: the kernel allows 65,530 mappings of a process, unless it is told otherwise.
const MOST: usize = 1 << 14;

/// What the handler knows of a mapping; both bounds are 0 where there is none.
struct Slot {
    /// Odd while somebody takes or leaves it, another number after each time.
    changes: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
}

impl Slot {
    /// Where the mapping ends in which an address lies, if it is this one's. Others may take or leave the slot meanwhile; whose mapping is at fault does
    /// not.
    fn end_of(&self, address: usize) -> Option<usize> {
        let changes = self.changes.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        let is_whole = changes.is_multiple_of(2) && self.changes.load(Ordering::Acquire) == changes;
        (is_whole && start <= address && address < end).then_some(end)
    }

    /// Gives it to a mapping. One thread at a time changes it.
    fn take(&self, start: usize, end: usize) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.is_cut.store(false, Ordering::Relaxed);
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn leave(&self) {
        self.take(0, 0);
    }
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        changes: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_cut: AtomicBool::new(false),
    }
}; MOST];

/// Slots from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The handler before ours, as the kernel knows it, and whether it wants to know more than the signal's number.
static OLD_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static OLD_WANTS_MORE: AtomicBool = AtomicBool::new(false);

/// Bytes of a page, 0 before the handler is set: in a handler nobody may ask.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    free: Vec::new(),
    old: None,
});

struct Registry {
    /// Slots that were used and are free again.
    free: Vec<usize>,
    /// What became of the signal before anything was mapped.
    old: Option<sigaction>,
}

/// A mapped file that others may write, and cut short.
pub struct Watched {
    // First: the handler must forget it before the memory is another's.
    slot: Registered,
    map: Mmap,
}

struct Registered(usize);

impl Watched {
    /// Maps a file; `None` if that cannot be, or there are too many already.
    pub(crate) fn map(file: &File) -> Option<Watched> {
        // SAFETY: the mapping is read-only. Who writes the file changes bytes that nobody takes for granted: what was read of it counts
        // only if the file's status or a sum of it is the same afterwards, and what is cut off becomes zeros (module doc).
        let map = unsafe { Mmap::map(file) }.ok()?;
        let slot = Registered::of(&map)?;
        Some(Watched { slot, map })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns true if the file was truncated since it was mapped.
    pub(crate) fn is_cut(&self) -> bool {
        SLOTS[self.slot.0].is_cut.load(Ordering::Acquire)
    }

    /// Lets go of the pages of a range; they come back from the file when touched again.
    pub(crate) fn release(&self, start: usize, end: usize) {
        release(&self.map, start, end);
    }
}

/// Lets go of the pages of a range of a mapped file; they come back from it when touched again.
pub(crate) fn release(map: &Mmap, start: usize, end: usize) {
    let len = end.min(map.len()).saturating_sub(start);
    if len > 0 {
        let advice = UncheckedAdvice::DontNeed;
        // SAFETY: a read-only mapping of a file; the pages read the same from the file again.
        let _ = unsafe { map.unchecked_advise_range(advice, start, len) };
    }
}

impl Registered {
    /// Tells the handler of a mapping.
    fn of(map: &Mmap) -> Option<Registered> {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match registry.free.pop() {
            Some(slot) => slot,
            None => {
                let next = USED.load(Ordering::Relaxed);
                if next == MOST {
                    return None;
                }
                USED.store(next + 1, Ordering::Release);
                next
            }
        };
        if registry.old.is_none() {
            registry.old = take_signal();
        }
        let start = map.as_ptr() as usize;
        SLOTS[slot].take(start, start + map.len());
        Some(Registered(slot))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        SLOTS[self.0].leave();
        registry.free.push(self.0);
        if registry.free.len() == USED.load(Ordering::Relaxed)
            && let Some(old) = registry.old.take()
        {
            give_signal_back(&old);
        }
    }
}

/// Sets our handler; gives what there was before.
fn take_signal() -> Option<sigaction> {
    // SAFETY: it only answers with a constant of the system.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_bytes = usize::try_from(page_bytes).unwrap_or(0);
    PAGE_BYTES.store(page_bytes, Ordering::Relaxed);
    let old = action_in_force()?;
    // Before ours is in force, for it goes on to this one.
    OLD_HANDLER.store(old.sa_sigaction, Ordering::Relaxed);
    let wants_more = old.sa_flags & libc::SA_SIGINFO != 0;
    OLD_WANTS_MORE.store(wants_more, Ordering::Release);
    let ours = sigaction {
        sa_sigaction: our_handler(),
        sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK,
        ..old
    };
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and calls nothing but mmap, sigaction and the handler before it.
    let set = unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, null_mut()) };
    (set == 0).then_some(old)
}

/// Returns what becomes of the signal now.
fn action_in_force() -> Option<sigaction> {
    let mut now = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: with no new action it only writes the one in force to `now`, which has room for it.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, null(), now.as_mut_ptr()) };
    // SAFETY: zeros are an action, the default one; the call has written another over it or nothing.
    let now = unsafe { now.assume_init() };
    (asked == 0).then_some(now)
}

fn our_handler() -> usize {
    on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize
}

/// Gives the signal back, unless somebody else has taken it meanwhile.
fn give_signal_back(old: &sigaction) {
    if action_in_force().is_some_and(|now| now.sa_sigaction == our_handler()) {
        // SAFETY: the action that was in force before.
        unsafe { libc::sigaction(libc::SIGBUS, old, null_mut()) };
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the signal's own description.
    let info_of = unsafe { &*info };
    // SAFETY: a SIGBUS has an address; one that another process sent has another field there, which is no address of ours.
    let address = unsafe { info_of.si_addr() } as usize;
    for slot in &SLOTS[..USED.load(Ordering::Acquire)] {
        if info_of.si_code > 0
            && let Some(end) = slot.end_of(address)
            && put_zeros(address, end)
        {
            slot.is_cut.store(true, Ordering::Release);
            return;
        }
    }
    pass_on(signal, info, context);
}

/// Puts zeros in the place of a mapping's pages from `address` on.
fn put_zeros(address: usize, end: usize) -> bool {
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    if page_bytes == 0 {
        return false;
    }
    let from = address / page_bytes * page_bytes;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the pages are those of a mapping of ours that is registered, and so still there; they stay readable.
    let put = unsafe {
        libc::mmap(
            from as *mut c_void,
            end - from,
            libc::PROT_READ,
            flags,
            -1,
            0,
        )
    };
    put != libc::MAP_FAILED
}

/// Does what would have been done without us.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let wants_more = OLD_WANTS_MORE.load(Ordering::Acquire);
    let handler = OLD_HANDLER.load(Ordering::Relaxed);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: zeros are the default action, which the instruction that comes again then meets.
        let default = unsafe { MaybeUninit::<sigaction>::zeroed().assume_init() };
        // SAFETY: a whole action.
        unsafe { libc::sigaction(signal, &raw const default, null_mut()) };
    } else if wants_more {
        // SAFETY: who set this address with SA_SIGINFO has said that it is such a function.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: who set this address without SA_SIGINFO has said that it is such a function.
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
    fn issue_19_a_slot_that_is_half_taken_holds_no_address() {
        let slot = slot(5000, 9000);
        assert_eq!(slot.end_of(6000), Some(9000));
        assert_eq!((slot.end_of(4999), slot.end_of(9000)), (None, None));
        slot.changes.store(1, Ordering::Relaxed);
        assert_eq!(slot.end_of(6000), None);
        slot.leave();
        assert_eq!(slot.end_of(100), None);
    }

    /// An address between two mappings is of neither, whichever of both the slot has at that moment.
    #[test]
    fn issue_19_the_bounds_of_two_mappings_are_never_one() {
        let (slot, is_done) = (slot(0, 0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    for (start, end) in [(1000, 2000), (3000, 4000)] {
                        slot.take(start, end);
                        slot.leave();
                    }
                }
                is_done.store(true, Ordering::Relaxed);
            });
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(slot.end_of(2500), None);
                assert!(matches!(slot.end_of(1500), None | Some(2000)));
            }
        });
    }

    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; LEN]).unwrap();
        file
    }

    fn handler() -> usize {
        let mut now = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: it only writes the action in force.
        unsafe { libc::sigaction(libc::SIGBUS, null(), now.as_mut_ptr()) };
        // SAFETY: zeros are an action.
        unsafe { now.assume_init() }.sa_sigaction
    }

    #[test]
    fn issue_19_what_is_cut_off_is_zeros_and_known() {
        let before = handler();
        let (file, other) = (file(), file());
        let (watched, beside) = (Watched::map(&file).unwrap(), Watched::map(&other).unwrap());
        assert_eq!(handler(), our_handler());
        assert!(!watched.is_cut());
        file.set_len(10).unwrap();
        let bytes = watched.bytes();
        assert!(bytes.iter().skip(1 << 16).all(|byte| *byte == 0));
        assert_eq!((bytes.len(), &bytes[..10]), (LEN, &b"xxxxxxxxxx"[..]));
        assert!(watched.is_cut() && !beside.is_cut());
        drop((watched, beside));
        assert_eq!(handler(), before);
    }
}
