//! The calling thread's place in the recorder: found in one thread-local load, taken at the first event, given back when the thread ends.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

use crate::loss::Cause;
use crate::names::ThreadName;
use crate::process::{self, Process};
use crate::slot::Slot;
use crate::writer::Writer;
use crate::{clock, open, sys};

/// Longest name of a process or thread.
const MAX_NAME_BYTES: usize = 1024;

/// What a thread records with. Lives as long as its slot; a thread's successor in the slot gets it too.
pub(crate) struct Seat {
    /// 0 in the child of a fork: then the seat is the parent's.
    alive: &'static AtomicU32,
    busy: &'static AtomicBool,
    pub(crate) process: &'static Process,
    slot: &'static Slot,
    writer: UnsafeCell<Writer>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Seat").finish_non_exhaustive()
    }
}

thread_local! {
    static SEAT: Cell<*const Seat> = const { Cell::new(std::ptr::null()) };
    static ATTACHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `record` with the calling thread's writer, attaching the thread if needed; `None` if recording is off, has ended, or a signal handler
/// interrupted the recorder on this thread.
#[inline(always)]
pub(crate) fn with<R>(record: impl FnOnce(&'static Seat, &mut Writer) -> R) -> Option<R> {
    // SAFETY: a seat is never freed.
    let seat = match unsafe { SEAT.get().as_ref() } {
        Some(seat) if seat.alive.load(Ordering::Relaxed) != 0 => seat,
        _ => attach()?,
    };
    enter(seat, record)
}

/// Runs `record` with the calling thread's writer if it has one.
pub(crate) fn with_own<R>(record: impl FnOnce(&mut Writer) -> R) -> Option<R> {
    // SAFETY: a seat is never freed.
    let seat = unsafe { SEAT.get().as_ref() }?;
    with_same(seat, record)
}

/// Runs `record` if the calling thread still has this seat; a span that was open at a fork ends in the parent only.
#[inline(always)]
pub(crate) fn with_same<R>(
    seat: &'static Seat,
    record: impl FnOnce(&mut Writer) -> R,
) -> Option<R> {
    if SEAT.get() != std::ptr::from_ref(seat) || seat.alive.load(Ordering::Relaxed) == 0 {
        return None;
    }
    enter(seat, |_, writer| record(writer))
}

#[inline(always)]
fn enter<R>(
    seat: &'static Seat,
    record: impl FnOnce(&'static Seat, &mut Writer) -> R,
) -> Option<R> {
    if seat.busy.load(Ordering::Relaxed) {
        seat.process.lost.count(Cause::Signal);
        return None;
    }
    seat.busy.store(true, Ordering::Relaxed);
    let _inside = Inside(seat.busy);
    // Whoever ends recording makes this store visible with a barrier on every thread: no fence is paid here.
    compiler_fence(Ordering::SeqCst);
    if process::is_closed() {
        None
    } else {
        // SAFETY: only the thread that has the seat comes here, and `busy` keeps its signal handlers out.
        Some(record(seat, unsafe { &mut *seat.writer.get() }))
    }
}

/// Ends an event however it ends: a value's own code may panic.
struct Inside(&'static AtomicBool);

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.store(false, Ordering::Release);
    }
}

/// Gives the calling thread a seat: the one slow moment of a thread.
#[cold]
#[inline(never)]
fn attach() -> Option<&'static Seat> {
    if ATTACHING.replace(true) {
        return None; // a signal handler, or an event recorded by what we call
    }
    let seat = take_seat();
    ATTACHING.set(false);
    seat
}

fn take_seat() -> Option<&'static Seat> {
    let process = process::current()?;
    let Ok(slot) = process.ring.take_slot() else {
        process.lost.count(Cause::Threads);
        return None;
    };
    let tid = sys::thread::tid();
    let writer = Writer::new(process, slot, tid);
    let seat = seat_of(slot, process, writer);
    slot.tid().store(tid, Ordering::Release);
    SEAT.set(seat);
    sys::thread::call_at_end(std::ptr::from_ref(seat).cast_mut().cast(), detach);
    set_thread_name(&sys::thread::name());
    Some(seat)
}

fn seat_of(slot: &'static Slot, process: &'static Process, writer: Writer) -> &'static Seat {
    let known = slot.seat.load(Ordering::Acquire);
    // SAFETY: a non-null pointer came from `Box::leak`; its last thread has given it back, so nobody else uses it.
    if let Some(seat) = unsafe { known.as_ref() } {
        // SAFETY: as above.
        unsafe { *seat.writer.get() = writer };
        return seat;
    }
    let seat = Seat {
        alive: process.alive,
        busy: &slot.busy,
        process,
        slot,
        writer: UnsafeCell::new(writer),
    };
    let seat = Box::leak(Box::new(seat));
    slot.seat.store(seat, Ordering::Release);
    seat
}

/// Gives the seat back when its thread ends. What is not flushed stays in the slot until it is.
unsafe extern "C" fn detach(seat: *mut libc::c_void) {
    // SAFETY: the value was set from a seat, which is never freed.
    let seat = unsafe { &*seat.cast_const().cast::<Seat>() };
    if SEAT.replace(std::ptr::null()) != std::ptr::from_ref(seat)
        || seat.alive.load(Ordering::Relaxed) == 0
    {
        return;
    }
    let closed = enter(seat, |seat, _| {
        open::close_stack(seat.process, seat.slot);
        seat.slot.tid().store(0, Ordering::Release);
    });
    if closed.is_some() {
        seat.process.ring.free_slot(seat.slot); // only now: its next thread must find `busy` unset for good
    }
}

/// Names the calling thread.
pub(crate) fn set_thread_name(name: &str) {
    let name = cut_name(name);
    with(|seat, writer| {
        let slot = seat.slot;
        let tid = slot.tid().load(Ordering::Relaxed);
        *slot
            .thread_name
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = ThreadName {
            tid,
            name: name.to_owned(),
        };
        slot.set_named_until(None);
        let line = thread_name_line(seat.process.pid, tid, name);
        writer.pen.append(&line, None);
        slot.set_named_until(Some(writer.pen.position()));
    });
}

/// The part of a process's or thread's name that is kept.
pub(crate) fn cut_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

/// The metadata line that names a thread or lane.
pub(crate) fn thread_name_line(pid: u32, tid: u32, name: &str) -> Vec<u8> {
    let mut record =
        crate::format::Metadata::new(pid, "thread_name", serde_json::json!({ "name": name }));
    record.tid = tid;
    let mut line = serde_json::to_vec(&record).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Waits until no thread is inside an event; false if one still is after `patience_ns`.
pub(crate) fn wait_until_idle(process: &Process, patience_ns: u64) -> bool {
    let end = clock::now_ns() + patience_ns;
    process.ring.slots().all(|slot| {
        while slot.busy.load(Ordering::Acquire) {
            if clock::now_ns() > end {
                return false;
            }
            std::thread::yield_now();
        }
        true
    })
}
