//! The calling thread's place in the recorder: found with one thread-local load, acquired at the
//! first event, released when the thread ends.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence};

use crate::process::reclaim::{self, ProcessRef};
use crate::process::state::Process;
use crate::process::{offload, open_spans, start};
use crate::ring::slot::{Slot, ThreadName};
use crate::sys::epoch::EpochWords;
use crate::sys::memory::{try_box, try_to_owned};
use crate::sys::{self, clock};
use crate::text::name::cut_name;
use crate::text::record::thread_name_line;
use crate::thread::slot_writer::SlotWriter;
use sa_format::loss::Cause;

/// The state with which a thread records, in one recording after the other. It is never freed: the
/// thread that ends a recording checks whether this thread is inside an event, and a late thread
/// checks here whether it may still begin one. After a thread has ended, another thread reuses its
/// state. Each state has a pair of cache lines to itself, because processors fetch lines in pairs
/// and its thread writes to it with every event.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct ThreadState {
    epochs: EpochWords,
    /// Recording that the state is bound to; [`UNBOUND`] without one.
    epoch: AtomicU32,
    /// True while the thread is between the first and the last store of an event.
    busy: AtomicBool,
    /// True while a thread has the state.
    in_use: AtomicBool,
    /// Process whose thread has the state. The child of a fork cannot know where its copy of an
    /// interrupted event of the parent would continue.
    pid: AtomicU32,
    /// Its recorder and slot are valid while the thread is inside an event of the state's epoch.
    writer: UnsafeCell<Option<SlotWriter>>,
    /// Name that the program gave the thread.
    name: RefCell<Option<String>>,
    next: *const ThreadState,
}

/// Epoch of a thread state without a writer. No recording has it.
const UNBOUND: u32 = u32::MAX;
/// Time in ns before a thread without a slot tries to get one again.
const RETRY_NS: u64 = 10_000_000;
/// List of all thread states. It only grows, up to the maximum number of threads that recorded at
/// the same time.
static STATES: AtomicPtr<ThreadState> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    static STATE: Cell<*const ThreadState> = const { Cell::new(std::ptr::null()) };
    static ATTACHING: Cell<bool> = const { Cell::new(false) };
    /// Time when a thread without a slot tries again, and why it got none. Each attempt takes
    /// system calls.
    static RETRY: Cell<(u64, Cause)> = const { Cell::new((0, Cause::Threads)) };
}

/// Returns the thread state of the calling thread, or `None` if the thread has recorded nothing
/// yet.
#[inline(always)]
fn current() -> Option<&'static ThreadState> {
    // SAFETY: a thread state is never freed.
    unsafe { STATE.get().as_ref() }
}

/// Runs `record` with the calling thread's writer. At its first event, gives the thread a writer
/// and a slot. Returns `None` without running it if recording is off or has ended, or if a signal
/// handler interrupted the recorder on this thread.
#[inline(always)]
pub(crate) fn with<R>(
    record: impl FnOnce(&'static ThreadState, &mut SlotWriter) -> R,
) -> Option<R> {
    let thread = match current() {
        Some(thread) if thread.epochs.is_recording(thread.epoch()) => thread,
        _ => attach(None)?,
    };
    enter(thread, thread.epoch(), record)
}

/// Runs `record` like [`with`], but only if the calling thread already has a writer for the current
/// recording. The outer result is `None` if it has none.
#[inline(always)]
pub(crate) fn with_ready<R>(
    record: impl FnOnce(&'static ThreadState, &mut SlotWriter) -> R,
) -> Option<Option<R>> {
    let thread = current().filter(|thread| thread.epochs.is_recording(thread.epoch()))?;
    Some(enter(thread, thread.epoch(), record))
}

/// Runs `record` with the calling thread's writer. Returns `None` without running it if the thread
/// has no writer.
pub(crate) fn with_attached<R>(record: impl FnOnce(&mut SlotWriter) -> R) -> Option<R> {
    let thread = current()?;
    with_same(thread, thread.epoch(), record)
}

/// Runs `record` if the calling thread still has the state `thread` and the recording `epoch` has
/// not ended, and otherwise returns `None`. A span that was open at a fork therefore only ends in
/// the parent. A span that was open when recording was restarted has ended with the old recording.
#[inline(always)]
pub(crate) fn with_same<R>(
    thread: &'static ThreadState,
    epoch: u32,
    record: impl FnOnce(&mut SlotWriter) -> R,
) -> Option<R> {
    if STATE.get() != std::ptr::from_ref(thread) || !thread.epochs.is_recording(epoch) {
        return None;
    }
    enter(thread, epoch, |_, writer| record(writer))
}

/// Runs `record` with the writer of `thread`, which is the calling thread's state, and marks the
/// thread as inside an event meanwhile. Returns `None` without running it if the recording `epoch`
/// has ended, or if a signal handler interrupted another event of the thread.
#[inline(always)]
fn enter<R>(
    thread: &'static ThreadState,
    epoch: u32,
    record: impl FnOnce(&'static ThreadState, &mut SlotWriter) -> R,
) -> Option<R> {
    if thread.busy.load(Ordering::Relaxed) {
        count_interrupted(thread);
        return None;
    }
    thread.busy.store(true, Ordering::Relaxed);
    let _busy = Busy(&thread.busy);
    // The thread that ends a recording makes this store visible with a barrier on every thread, so
    // no fence is needed here.
    compiler_fence(Ordering::SeqCst);
    if !thread.epochs.is_recording(epoch) {
        return None;
    }
    // SAFETY: only the thread that has the state gets here, and `busy` keeps its signal handlers
    // out.
    let writer = unsafe { &mut *thread.writer.get() }.as_mut();
    // SAFETY: a thread state has an epoch only while it has a writer.
    Some(record(thread, unsafe { writer.unwrap_unchecked() }))
}

/// Counts an event as lost because a signal handler recorded it in the middle of another event.
#[cold]
fn count_interrupted(thread: &'static ThreadState) {
    if let Some(process) = reclaim::existing().filter(|process| process.epoch() == thread.epoch()) {
        process.lost.count(Cause::Signal);
    }
}

/// Clears the flag when an event ends, even if it ends with a panic in a value's own code.
struct Busy(&'static AtomicBool);

impl Drop for Busy {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.store(false, Ordering::Release);
    }
}

/// Gives the calling thread a thread state and a slot, so that it can record, and returns the
/// state. Returns `None` if that is not possible. This is the only slow step in a thread's life.
/// `name` is the thread's name, by default the kernel's.
#[cold]
#[inline(never)]
fn attach(name: Option<&str>) -> Option<&'static ThreadState> {
    if ATTACHING.replace(true) {
        return None; // a signal handler, or an event recorded by a function called below
    }
    let thread = acquire_state(name);
    ATTACHING.set(false);
    thread
}

fn acquire_state(name: Option<&str>) -> Option<&'static ThreadState> {
    let process = start::current().filter(|process| !process.is_finished())?;
    let thread = rebindable_state().ok()?;
    let now_ns = clock::now_ns();
    let (retry_at_ns, cause) = RETRY.get();
    if now_ns < retry_at_ns {
        process.lost.count(cause);
        return None;
    }
    let refuse = |cause: Cause| {
        RETRY.set((clock::now_ns() + RETRY_NS, cause));
        process.lost.count(cause);
        None
    };
    let slot = match process.ring.acquire_slot() {
        Ok(slot) => slot,
        Err(error) => {
            return refuse(match error.raw_os_error() {
                Some(libc::ETIMEDOUT) => Cause::Busy,
                Some(libc::ENOMEM) => Cause::OutOfMemory,
                _ => Cause::Threads,
            });
        }
    };
    let Ok(thread) = bind(&process, slot, thread) else {
        process.ring.release_slot(slot);
        return refuse(Cause::OutOfMemory);
    };
    if let Some(name) = name {
        thread.set_name(name);
    }
    let given = thread.name.try_borrow().ok();
    let given = given.and_then(|name| try_to_owned(name.as_deref()?).ok());
    record_name(&given.unwrap_or_else(|| sys::thread::name().unwrap_or_default()));
    process.do_upkeep(); // this may be the second thread
    Some(thread)
}

/// Creates the calling thread's writer for `slot`, and stores it in the thread's state. `thread` is
/// the state that the thread already has. Without one, it gets a free or a new one.
fn bind(
    process: &ProcessRef,
    slot: &'static Slot,
    thread: Option<&'static ThreadState>,
) -> io::Result<&'static ThreadState> {
    let tid = sys::thread::tid();
    // SAFETY: the state only uses it inside events of its epoch, and the reaper checks for those.
    let recorder = unsafe { process.for_thread() };
    let writer = SlotWriter::new(recorder, slot, tid)?;
    let thread = match thread {
        Some(thread) => thread,
        None => {
            let thread = reuse_or_create(process.epochs)?;
            sys::thread::call_at_thread_end(std::ptr::from_ref(thread).cast_mut().cast(), detach);
            thread
        }
    };
    thread.bind(recorder, writer);
    STATE.set(thread);
    slot.tid().store(tid, Ordering::Release);
    Ok(thread)
}

/// Returns the state that the calling thread already has, or `None` if it needs a new one. Returns
/// an error if a signal handler interrupted an event, because then the state cannot be bound to
/// another recording.
fn rebindable_state() -> Result<Option<&'static ThreadState>, ()> {
    let is_busy = |thread: &&ThreadState| thread.busy.load(Ordering::Relaxed);
    match current().filter(is_busy) {
        None => Ok(current()),
        // In the child of a fork, the interrupted event belongs to the parent. The child continues
        // with another thread state.
        Some(thread) if thread.pid.load(Ordering::Relaxed) != std::process::id() => Ok(None),
        Some(_) => Err(()),
    }
}

/// Returns a thread state that no thread uses any more, or creates one.
fn reuse_or_create(epochs: EpochWords) -> io::Result<&'static ThreadState> {
    let free = states().find(|thread| {
        !thread.in_use.load(Ordering::Relaxed) && !thread.in_use.swap(true, Ordering::Acquire)
    });
    free.map_or_else(|| create(epochs), Ok)
}

fn create(epochs: EpochWords) -> io::Result<&'static ThreadState> {
    let mut thread = try_box(ThreadState {
        epochs,
        epoch: AtomicU32::new(UNBOUND),
        busy: AtomicBool::new(false),
        in_use: AtomicBool::new(true),
        pid: AtomicU32::new(0),
        writer: UnsafeCell::new(None),
        name: RefCell::new(None),
        next: STATES.load(Ordering::Acquire),
    })?;
    loop {
        let (next, made) = (thread.next.cast_mut(), std::ptr::from_mut(&mut *thread));
        match STATES.compare_exchange_weak(next, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(Box::leak(thread)),
            Err(other) => thread.next = other,
        }
    }
}

fn states() -> impl Iterator<Item = &'static ThreadState> {
    // SAFETY: every pointer of the list came from a box that is never freed.
    let first = unsafe { STATES.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above.
    std::iter::successors(first, |thread| unsafe { thread.next.as_ref() })
}

impl ThreadState {
    /// Returns the number of the recording that the state is bound to.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Binds the calling thread's state to a recording: stores its `writer` and the recording's
    /// number. The thread must be outside any event.
    fn bind(&self, process: &'static Process, writer: SlotWriter) {
        // SAFETY: only the thread that has the state gets here, and its signal handlers see that
        // the recording of the state's epoch has ended.
        unsafe { *self.writer.get() = Some(writer) };
        self.pid.store(process.pid, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.epoch.store(process.epoch(), Ordering::Release);
    }

    /// Stores the name that the program gives the calling thread. Called outside events. Returns
    /// true if the name has changed.
    fn set_name(&self, name: &str) -> bool {
        let Ok(mut stored) = self.name.try_borrow_mut() else {
            return false; // a signal handler, or an allocator that records
        };
        let is_new = stored.as_deref() != Some(name);
        if is_new {
            *stored = try_to_owned(name).ok(); // without memory, the next recording uses the kernel's name
        }
        is_new
    }

    /// Returns true if the thread that has the state is, or may be, inside an event of this
    /// recording.
    fn is_inside(&self, epoch: u32) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch && self.busy.load(Ordering::Acquire)
    }
}

/// Runs when a thread ends: records its open spans as unfinished, and makes its slot and its state
/// available to other threads. Unflushed lines stay in the slot until they are flushed.
unsafe extern "C" fn detach(thread: *mut libc::c_void) {
    offload::record_first_thread_end();
    // SAFETY: the value was set from a thread state, which is never freed.
    let thread = unsafe { &*thread.cast_const().cast::<ThreadState>() };
    if STATE.replace(std::ptr::null()) != std::ptr::from_ref(thread) {
        return;
    }
    if thread.epochs.is_recording(thread.epoch()) {
        enter(thread, thread.epoch(), |_, writer| {
            let (process, slot) = (writer.process, writer.slot);
            open_spans::close_stack(process, slot);
            slot.tid().store(0, Ordering::Release);
            process.ring.release_slot(slot);
        });
    }
    thread.epoch.store(UNBOUND, Ordering::Release);
    // SAFETY: this is the thread's last use of the state, outside any event.
    unsafe { *thread.writer.get() = None };
    if let Ok(mut name) = thread.name.try_borrow_mut() {
        *name = None;
    }
    thread.in_use.store(false, Ordering::Release);
}

/// Gives the calling thread a name in the trace, in this recording and in later ones.
pub(crate) fn set_thread_name(name: &str) {
    let name = cut_name(name);
    match current() {
        Some(thread) if thread.epochs.is_recording(thread.epoch()) => {
            if thread.set_name(name) {
                record_name(name);
            }
        }
        _ => {
            attach(Some(name)); // this also records the name
        }
    }
}

/// Writes the record with the calling thread's name into its slot.
fn record_name(name: &str) {
    with(|_, writer| {
        let (process, slot) = (writer.process, writer.slot);
        let tid = slot.tid().load(Ordering::Relaxed);
        let Ok(owned_name) = try_to_owned(name) else {
            return; // the thread stays without a name
        };
        let mut own = slot
            .thread_name
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *own = ThreadName {
            tid,
            name: owned_name,
        };
        drop(own);
        slot.named_until.store(u64::MAX, Ordering::Relaxed);
        let line = thread_name_line(process.pid, tid, name);
        writer.events.append(&line);
        let end = writer.events.position();
        slot.named_until.store(end, Ordering::Relaxed);
    });
}

/// Returns true if no thread is inside an event of the recording `epoch`, which accepts no more
/// events. Then nothing uses that recording any more.
pub(crate) fn no_thread_inside(epoch: u32) -> bool {
    states().all(|thread| !thread.is_inside(epoch))
}
