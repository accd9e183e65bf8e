//! The spans that are open on each lane. A span begins and ends on the lane of the running code: the asyncio task if there is one, otherwise the thread. The state of an open span is stored
//! here and not in its object, so that threads, tasks and recursion can share an object.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyGeneratorExit;
use pyo3::ffi;
use pyo3::prelude::*;
use sa_recorder::{Levels, Recorder, SpanGuard, Track, now_ns};

use crate::call::misuse;
use crate::event::Event;
use crate::{task, tasks, thread_setup};

/// Identifies what opened a span: the address of its object, or [`BEGUN`] for a call without an object.
pub(crate) type Owner = usize;
/// Owner of spans that were opened by `begin`.
pub(crate) const BEGUN: Owner = 0;
/// Number of unrecorded [`BEGUN`] spans that are not on any lane.
pub(crate) static BEGUN_MISSED: Missed = Missed::new(0);

/// Number of an owner's spans that began unrecorded while no recorded span was open. They are not on any lane, and their ends must not end other spans.
pub(crate) type Missed = AtomicU32;

/// Spans that are open on one thread, outside of tasks.
#[derive(Default)]
struct ThreadLane(Vec<(Owner, SpanGuard)>);

impl Drop for ThreadLane {
    fn drop(&mut self) {
        // The thread has ended, so these spans stay open and the recorder shows them as unfinished.
        self.0.drain(..).for_each(std::mem::forget);
    }
}

/// How a span ends.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    /// Args to add to the span's.
    pub(crate) args: &'a [u8],
    /// End time by the recorder's clock, or `None` for now.
    pub(crate) ns: Option<u64>,
}

thread_local! {
    static THREAD: RefCell<ThreadLane> = const { RefCell::new(ThreadLane(Vec::new())) };
}

/// Opens a span, as `event` describes it, in the running asyncio task or thread. If its level is off, the span is not recorded, and `missed` counts it if no
/// recorded span is open.
pub(crate) fn enter(event: &Event<'_, '_>, owner: Owner, missed: &Missed) {
    if !sa_recorder::__wants(event.level()) {
        if !enter_unrecorded(event.py(), owner) {
            missed.fetch_add(1, Ordering::Relaxed);
        }
        return;
    }
    thread_setup::prepare_thread(event.py());
    match task::current(event.py()) {
        Some(task) => tasks::enter(&task, event, owner),
        None => {
            with_thread(|lane| lane.push((owner, event.open_on_thread())));
        }
    }
}

/// Keeps only the first `kept_bytes` bytes of the args in the written line of the span that `owner` has just opened. The others are visible only while the
/// span is open. Has no effect in a task, where the line contains all args.
pub(crate) fn truncate_line_args(owner: Owner, kept_bytes: usize) {
    with_thread(|lane| {
        if let Some((_, guard)) = lane.last_mut().filter(|(opener, _)| *opener == owner) {
            guard.truncate_line_args(kept_bytes);
        }
    });
}

/// Opens an unrecorded span in the running task or thread if a recorded one is open there, so that each end finds its beginning. Returns false if no recorded
/// span is open.
fn enter_unrecorded(py: Python<'_>, owner: Owner) -> bool {
    if tasks::any_open()
        && let Some(task) = task::current(py)
    {
        return tasks::enter_unrecorded(&task, owner);
    }
    let remembered = with_thread(|lane| {
        let is_above = !lane.is_empty();
        if is_above {
            lane.push((owner, SpanGuard::off()));
        }
        is_above
    });
    remembered.unwrap_or(false)
}

/// Ends the innermost span of `owner` (the object that opened it) in the running task or thread now, and adds args to it.
pub(crate) fn exit(py: Python<'_>, owner: Owner, missed: &Missed, args: &[u8]) {
    exit_at(py, owner, missed, End { args, ns: None });
}

/// Ends the innermost span of `owner` (the object that opened it) in the running task or thread. If the span was opened in another task, it is found there: an
/// async generator may be closed from anywhere.
pub(crate) fn exit_at(py: Python<'_>, owner: Owner, missed: &Missed, end: End<'_>) {
    if exit_here(py, owner, missed, end) {
        return;
    }
    if owner == BEGUN {
        end_without_begin(py);
    } else if tasks::any_open() {
        tasks::exit_anywhere(py, owner, end);
    }
}

/// Ends the innermost span of `owner` (the object that opened it) in the running task or thread. Unlike `exit_at`, it does not search other tasks. Returns
/// true if there was a span.
pub(crate) fn exit_here(py: Python<'_>, owner: Owner, missed: &Missed, end: End<'_>) -> bool {
    // Most ends, recorded or not, skip the question which task is running, because the answer would change nothing.
    if !tasks::any_open() && (missed.load(Ordering::Relaxed) == 0 || !is_open_on_thread(owner)) {
        return exit_thread(owner, end) || consume_missed(missed);
    }
    if is_in_freed_task(py) && tasks::exit_freed(owner, end) {
        return true;
    }
    match task::current(py) {
        Some(task) => {
            tasks::exit(&task, owner, end) || consume_missed(missed) || exit_thread(owner, end)
        }
        None => exit_thread(owner, end) || consume_missed(missed),
    }
}

/// Warns about a call of `end` without a `begin`, unless nothing is recorded or the parent process may have opened the span.
#[cold]
fn end_without_begin(py: Python<'_>) {
    if Recorder::get().levels() != Levels::NONE && !tasks::has_forgotten() {
        misuse::end_without_begin(py);
    }
}

/// Returns true if the running code may belong to a task that no longer exists: Python closes the coroutine of such a task while other code runs.
fn is_in_freed_task(py: Python<'_>) -> bool {
    tasks::any_freed() && is_closing(py)
}

/// Returns true if the running code is a coroutine or generator that is being closed: a `GeneratorExit` is being handled.
fn is_closing(py: Python<'_>) -> bool {
    let (mut kind, mut value, mut traceback) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    // SAFETY: the thread is attached. The pointers are to places for new references or null.
    unsafe { ffi::PyErr_GetExcInfo(&raw mut kind, &raw mut value, &raw mut traceback) };
    let [kind, _value, _traceback] = [kind, value, traceback].map(|object| {
        // SAFETY: a new reference, or null.
        unsafe { Bound::from_owned_ptr_or_opt(py, object) }
    });
    kind.is_some_and(|kind| kind.is(py.get_type::<PyGeneratorExit>()))
}

/// Returns the track that shows the running asyncio task, for writing an event that began at `start_ns`. Returns `None` if no task with a track is running.
pub(crate) fn task_track(py: Python<'_>, start_ns: u64) -> Option<Track> {
    if !tasks::any_open() {
        return None;
    }
    tasks::track_since(&task::current(py)?, start_ns)
}

/// Decrements an owner's count of spans that are on no lane, unless it is 0. Returns true if it did, because the end that is being handled then belongs to one
/// of those spans.
fn consume_missed(missed: &Missed) -> bool {
    let one_less = |count: u32| count.checked_sub(1);
    let removed = missed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    removed.is_ok()
}

/// Returns true if `owner`, the object that opens spans, has one open on the calling thread, outside of tasks.
fn is_open_on_thread(owner: Owner) -> bool {
    with_thread(|lane| position(lane, owner).is_some()) == Some(true)
}

fn exit_thread(owner: Owner, end: End<'_>) -> bool {
    let Some(guard) = remove_from_thread(owner) else {
        return false;
    };
    if end.args.is_empty() && end.ns.is_none() {
        drop(guard); // ends it now
    } else {
        guard.end_with(end.ns.unwrap_or_else(now_ns), end.args);
    }
    true
}

/// Removes the innermost span that `owner` (an object) has open on the calling thread, and returns it. Returns `None` if there is none.
fn remove_from_thread(owner: Owner) -> Option<SpanGuard> {
    let removed = with_thread(|lane| {
        let at = position(lane, owner)?;
        Some(lane.remove(at).1)
    });
    removed.flatten()
}

/// Adds encoded args to the innermost open span of `owner` in the running task or thread. Does nothing if there is none.
pub(crate) fn add_args(py: Python<'_>, owner: Owner, args: &[u8]) {
    if is_in_freed_task(py) && tasks::add_args_freed(owner, args) {
        return;
    }
    if tasks::any_open()
        && let Some(task) = task::current(py)
        && tasks::add_args(&task, owner, args)
    {
        return;
    }
    with_thread(|lane| {
        if let Some(at) = position(lane, owner) {
            lane[at].1.raw(args);
        }
    });
}

/// Returns the index of the innermost span of `owner` on a lane (the list of spans that are open in a thread or task). It is usually the last span.
pub(crate) fn position<T>(lane: &[(Owner, T)], owner: Owner) -> Option<usize> {
    lane.iter().rposition(|(other, _)| *other == owner)
}

/// Calls `act` with the spans that are open on the calling thread, and returns its result. Returns `None` if the thread has ended, or if another call of
/// `with_thread` is running.
fn with_thread<R>(act: impl FnOnce(&mut Vec<(Owner, SpanGuard)>) -> R) -> Option<R> {
    THREAD
        .try_with(|lane| Some(act(&mut lane.try_borrow_mut().ok()?.0)))
        .ok()?
}
