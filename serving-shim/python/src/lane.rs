//! Which spans are open on which lane. A span begins and ends on the lane of the code that runs: the asyncio task, else the thread. What is known of an open span lies here and not in its
//! object, so that threads, tasks and recursion may share one.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyGeneratorExit;
use pyo3::ffi;
use pyo3::prelude::*;
use sa_recorder::{Levels, Recorder, SpanGuard, Track, now_ns};

use crate::call::misuse;
use crate::event::Event;
use crate::{start, task, tasks};

/// Who opened a span: the address of its object, [`BEGUN`] for a call without one.
pub(crate) type Owner = usize;
/// The owner of spans that a call began.
pub(crate) const BEGUN: Owner = 0;
/// How often [`BEGUN`] spans began that nobody remembers.
pub(crate) static BEGUN_MISSED: Missed = Missed::new(0);

/// How often an owner's spans began unrecorded where nothing recorded was open: nobody remembers them, and their ends must end nothing.
pub(crate) type Missed = AtomicU32;

/// The spans open on one thread outside of tasks.
#[derive(Default)]
struct ThreadLane(Vec<(Owner, SpanGuard)>);

impl Drop for ThreadLane {
    fn drop(&mut self) {
        // The thread ends with spans open: the recorder shows them as unfinished.
        self.0.drain(..).for_each(std::mem::forget);
    }
}

/// How a span ends.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    /// Args beside those it has.
    pub(crate) args: &'a [u8],
    /// By the recorder's clock; `None` for now.
    pub(crate) ns: Option<u64>,
}

thread_local! {
    static THREAD: RefCell<ThreadLane> = const { RefCell::new(ThreadLane(Vec::new())) };
}

/// Opens a span on the lane of the running code.
pub(crate) fn enter(event: &Event<'_, '_>, owner: Owner, missed: &Missed) {
    if !sa_recorder::__wants(event.level()) {
        if !enter_unrecorded(event.py(), owner) {
            missed.fetch_add(1, Ordering::Relaxed);
        }
        return;
    }
    start::prepare_thread(event.py());
    match task::current(event.py()) {
        Some(task) => tasks::enter(&task, event, owner),
        None => {
            with_thread(|lane| lane.push((owner, event.open_on_thread())));
        }
    }
}

/// Leaves the args from byte `kept` on out of the line of the span that this owner has just opened: they are known while it is open. In a task all of them are in its line.
pub(crate) fn keep_args(owner: Owner, kept: usize) {
    with_thread(|lane| {
        if let Some((_, guard)) = lane.last_mut().filter(|(of, _)| *of == owner) {
            guard.keep_args(kept);
        }
    });
}

/// Remembers a span that is not recorded above one that is, so that each end finds its beginning; whether there was one.
fn enter_unrecorded(py: Python<'_>, owner: Owner) -> bool {
    if tasks::are_open()
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

/// Ends the innermost span of this owner on the lane of the running code now, with more args.
pub(crate) fn exit(py: Python<'_>, owner: Owner, missed: &Missed, args: &[u8]) {
    exit_at(py, owner, missed, End { args, ns: None });
}

/// Ends the innermost span of this owner on the lane of the running code. One that was opened in another task is found there: an async generator may be
/// closed from anywhere.
pub(crate) fn exit_at(py: Python<'_>, owner: Owner, missed: &Missed, end: End<'_>) {
    if exit_here(py, owner, missed, end) {
        return;
    }
    if owner == BEGUN {
        end_without_begin(py);
    } else if tasks::are_open() {
        tasks::exit_anywhere(py, owner, end);
    }
}

/// The same for code that cannot have begun elsewhere, or not at all; whether there was one.
pub(crate) fn exit_here(py: Python<'_>, owner: Owner, missed: &Missed, end: End<'_>) -> bool {
    // Most ends, recorded or not, need not ask which task runs: the answer would change nothing.
    if !tasks::are_open() && (missed.load(Ordering::Relaxed) == 0 || !is_open_on_thread(owner)) {
        return exit_thread(owner, end) || take_missed(missed);
    }
    if is_of_gone(py) && tasks::exit_gone(owner, end) {
        return true;
    }
    match task::current(py) {
        Some(task) => {
            tasks::exit(&task, owner, end) || take_missed(missed) || exit_thread(owner, end)
        }
        None => exit_thread(owner, end) || take_missed(missed),
    }
}

/// Says that nothing was begun, unless nothing is recorded, or the begun one may have been the parent's.
#[cold]
fn end_without_begin(py: Python<'_>) {
    if Recorder::get().levels() != Levels::NONE && !tasks::were_forgotten() {
        misuse::end_without_begin(py);
    }
}

/// Whether this may be the code of a task that is gone: its coroutine is closed amid whatever code runs.
fn is_of_gone(py: Python<'_>) -> bool {
    tasks::are_gone() && is_closing(py)
}

/// Returns true if the running code is a coroutine or generator that is being closed: a `GeneratorExit` is being handled.
fn is_closing(py: Python<'_>) -> bool {
    let (mut kind, mut value, mut traceback) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    // SAFETY: the thread is attached; the pointers are to places for new references or null.
    unsafe { ffi::PyErr_GetExcInfo(&raw mut kind, &raw mut value, &raw mut traceback) };
    let [kind, _value, _traceback] = [kind, value, traceback].map(|object| {
        // SAFETY: a new reference, or null.
        unsafe { Bound::from_owned_ptr_or_opt(py, object) }
    });
    kind.is_some_and(|kind| kind.is(py.get_type::<PyGeneratorExit>()))
}

/// The row of the task that runs, if it has one, for what lasted since `start_ns`.
pub(crate) fn task_row(py: Python<'_>, start_ns: u64) -> Option<Track> {
    if !tasks::are_open() {
        return None;
    }
    tasks::row_since(&task::current(py)?, start_ns)
}

/// Whether the end is that of a span nobody remembers.
fn take_missed(missed: &Missed) -> bool {
    let one_less = |count: u32| count.checked_sub(1);
    let taken = missed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    taken.is_ok()
}

/// Returns true if a span of this owner is open on the thread, outside of tasks.
fn is_open_on_thread(owner: Owner) -> bool {
    with_thread(|lane| position(lane, owner).is_some()) == Some(true)
}

fn exit_thread(owner: Owner, end: End<'_>) -> bool {
    let Some(guard) = take_thread(owner) else {
        return false;
    };
    if end.args.is_empty() && end.ns.is_none() {
        drop(guard); // now
    } else {
        guard.end_with(end.ns.unwrap_or_else(now_ns), end.args);
    }
    true
}

/// The innermost span of this owner that is open on the thread, which it is no more.
fn take_thread(owner: Owner) -> Option<SpanGuard> {
    let taken = with_thread(|lane| {
        let at = position(lane, owner)?;
        Some(lane.remove(at).1)
    });
    taken.flatten()
}

/// Adds args to the innermost open span of this owner on the lane of the running code.
pub(crate) fn add_args(py: Python<'_>, owner: Owner, args: &[u8]) {
    if is_of_gone(py) && tasks::add_args_gone(owner, args) {
        return;
    }
    if tasks::are_open()
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

/// Where the innermost span of an owner stands; mostly it is the last.
pub(crate) fn position<T>(lane: &[(Owner, T)], owner: Owner) -> Option<usize> {
    lane.iter().rposition(|(other, _)| *other == owner)
}

/// `None` where the thread has ended, or from what is being done with its spans.
fn with_thread<R>(act: impl FnOnce(&mut Vec<(Owner, SpanGuard)>) -> R) -> Option<R> {
    THREAD
        .try_with(|lane| Some(act(&mut lane.try_borrow_mut().ok()?.0)))
        .ok()?
}
