//! Hides our calls from the program's own thread: they overwrite the thread's last error when they are refused, and its last task when they record an
//! event. In: our calls. Out: what the runtime would answer without them, for an interposer to give to the program.

use super::ascend::{self, Runtime};
use super::{Code, Event, Stream, Task, stream_cache};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

thread_local! {
    /// True during our own calls: the outermost `unnoticed` puts things right.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// The program's own last error, which a call of ours has overwritten; 0 for none.
    static OWED: Cell<Code> = const { Cell::new(0) };
    /// Our last record.
    static RECORDED: Cell<Option<Recorded>> = const { Cell::new(None) };
}

/// A record of ours.
#[derive(Clone, Copy)]
struct Recorded {
    ours: Task,
    /// The program's last task before it.
    programs: Task,
    /// Age of the stream cache at that time. A stream that is made later may have the ids of ours.
    age: u64,
}

/// True if an interposer gives the program the answers that it would get without us.
static INTERPOSED: AtomicBool = AtomicBool::new(false);
/// True once the program has asked for a task.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Number of our records before it did.
static UNASKED: AtomicU32 = AtomicU32::new(0);
/// After this many records the program counts as one that never asks: looking at the last task around each record costs two calls.
const PATIENCE: u32 = 10_000;

/// Says that an interposer is there.
pub(crate) fn interpose() {
    if !is_interposed() {
        INTERPOSED.store(true, Ordering::Relaxed);
    }
}

/// Returns true if an interposer is there.
pub(crate) fn is_interposed() -> bool {
    INTERPOSED.load(Ordering::Relaxed)
}

/// Makes calls of ours that leave no error for the program to find.
pub(crate) fn unnoticed<T>(runtime: &Runtime, work: impl FnOnce() -> T) -> T {
    if AT_WORK.get() {
        return work();
    }
    unnoticed_after(runtime, runtime.last_error(), work)
}

/// Does the same as [`unnoticed`] if the thread's last error is known already.
pub(crate) fn unnoticed_after<T>(runtime: &Runtime, error: Code, work: impl FnOnce() -> T) -> T {
    /// Puts things right, even if the work panics.
    struct Work<'a>(&'a Runtime, Code);

    impl Drop for Work<'_> {
        fn drop(&mut self) {
            AT_WORK.set(false);
            if ascend::take_refused() {
                put_right(self.0, self.1);
            }
        }
    }

    if AT_WORK.replace(true) {
        return work();
    }
    ascend::take_refused();
    let _work = Work(runtime, error);
    work()
}

/// Removes the error that a refused call of ours has left. `error` is the program's own.
fn put_right(runtime: &Runtime, error: Code) {
    if error == 0 {
        runtime.forget_last_error();
    } else if is_interposed() {
        runtime.forget_last_error();
        OWED.set(error);
    } // else nobody could give it back: better a wrong error than none
}

/// Returns the last error that the program should see if the runtime answers `real`. With `taken` the program will not see it again.
pub(crate) fn shown_error(real: Code, taken: bool) -> Code {
    let owed = if taken { OWED.replace(0) } else { OWED.get() };
    if real == 0 { owed } else { real }
}

/// Puts an event into a stream, and remembers the program's last task.
pub(crate) fn record(runtime: &Runtime, event: Event, stream: Stream) -> Result<(), Code> {
    if !is_interposed() || is_never_asked() {
        RECORDED.set(None);
        return runtime.record(event, stream);
    }
    let programs = runtime.last_task().map(shown);
    let age = stream_cache::age();
    let outcome = runtime.record(event, stream);
    let tasks = runtime.last_task().zip(programs);
    RECORDED.set(tasks.map(|(ours, programs)| Recorded {
        ours,
        programs,
        age,
    }));
    outcome
}

/// Returns true if the program counts as one that never asks for a task.
fn is_never_asked() -> bool {
    if ASKED.load(Ordering::Relaxed) {
        return false;
    }
    if UNASKED.load(Ordering::Relaxed) >= PATIENCE {
        return true;
    }
    UNASKED.fetch_add(1, Ordering::Relaxed);
    false
}

/// Notes that the program has submitted a task. Ours is no longer the last one, although a later stream may have the same ids.
pub(crate) fn submitted() {
    RECORDED.set(None);
}

/// Checks if the program has submitted a task since our last record. Needed where no record of ours follows.
pub(crate) fn look_for_submitted(runtime: &Runtime) {
    let ours = RECORDED.get().map(|recorded| recorded.ours);
    if ours.is_some() && runtime.last_task() != ours {
        submitted();
    }
}

/// Returns true if a task that the program submits now may have the ids of our last record, because a stream was made or destroyed since then.
pub(crate) fn may_repeat_record() -> bool {
    let recorded = RECORDED.get();
    recorded.is_some_and(|recorded| recorded.age != stream_cache::age())
}

/// Returns the last task that the program should see if the runtime answers `real`.
pub(crate) fn shown_task(real: Task) -> Task {
    if !ASKED.load(Ordering::Relaxed) {
        ASKED.store(true, Ordering::Relaxed);
    }
    shown(real)
}

fn shown(real: Task) -> Task {
    match RECORDED.get() {
        Some(recorded) if recorded.ours == real => recorded.programs,
        _ => real,
    }
}
