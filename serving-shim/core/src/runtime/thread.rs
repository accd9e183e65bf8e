//! Hides our calls from the program. They overwrite the thread's last error when they are refused, and its last task when they record an event. In: our calls. Out:
//! the answers that the runtime would give without them, which an interposer returns to the program.

use super::ascend::{self, Runtime};
use super::{Code, Event, Stream, Task, stream_cache};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

thread_local! {
    /// True during our own calls. The outermost `unnoticed` restores the last error.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// The program's own last error if one of our calls has overwritten it, otherwise 0.
    static OWED: Cell<Code> = const { Cell::new(0) };
    /// Our last recorded event.
    static RECORDED: Cell<Option<Recorded>> = const { Cell::new(None) };
}

/// An event that we have recorded.
#[derive(Clone, Copy)]
struct Recorded {
    ours: Task,
    /// The program's last task before the event.
    programs: Task,
    /// Age of the stream cache at that time. A stream that is created later may have the same ids.
    age: u64,
}

/// True if an interposer returns to the program the answers that it would get without us.
static INTERPOSED: AtomicBool = AtomicBool::new(false);
/// True once the program has queried its last task.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Number of our events before the program's first query.
static UNASKED: AtomicU32 = AtomicU32::new(0);
/// Number of our events after which we assume that the program never queries its last task. Reading the last task around each event costs two calls.
const PATIENCE: u32 = 10_000;

/// Records that an interposer is in this process, which returns our corrected answers to the program.
pub(crate) fn interpose() {
    if !is_interposed() {
        INTERPOSED.store(true, Ordering::Relaxed);
    }
}

/// Returns true if an interposer is in this process, which returns our corrected answers to the program.
pub(crate) fn is_interposed() -> bool {
    INTERPOSED.load(Ordering::Relaxed)
}

/// Runs `work`, which makes our own calls of the runtime, without leaving an error that the program could find.
pub(crate) fn unnoticed<T>(runtime: &Runtime, work: impl FnOnce() -> T) -> T {
    if AT_WORK.get() {
        return work();
    }
    unnoticed_after(runtime, runtime.last_error(), work)
}

/// Runs `work` like [`unnoticed`]. `error` is the thread's last error, which the caller already knows.
pub(crate) fn unnoticed_after<T>(runtime: &Runtime, error: Code, work: impl FnOnce() -> T) -> T {
    /// Restores the last error, even if the work panics.
    struct Work<'a>(&'a Runtime, Code);

    impl Drop for Work<'_> {
        fn drop(&mut self) {
            AT_WORK.set(false);
            if ascend::reset_refused() {
                restore_error(self.0, self.1);
            }
        }
    }

    if AT_WORK.replace(true) {
        return work();
    }
    ascend::reset_refused();
    let _work = Work(runtime, error);
    work()
}

/// Removes the error that a refused call of ours has left in the runtime. `error` is the program's own last error, or 0.
fn restore_error(runtime: &Runtime, error: Code) {
    if error == 0 {
        runtime.clear_last_error();
    } else if is_interposed() {
        runtime.clear_last_error();
        OWED.set(error);
    } // otherwise the error could not be restored, and a wrong error is better than none
}

/// Returns the thread's last error as it would be without our own calls. `real` is what the runtime returned. With `taken` the error is cleared, so the
/// program will not see it again.
pub(crate) fn shown_error(real: Code, taken: bool) -> Code {
    let owed = if taken { OWED.replace(0) } else { OWED.get() };
    if real == 0 { owed } else { real }
}

/// Puts our event into a stream, and stores which task the program submitted last.
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

/// Returns true if we assume that the program never asks the runtime for its last task, because it has not done so for 10,000 events.
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

/// Records that the program has submitted a task to a stream. Our event is no longer the thread's last task, although a later stream may have the same ids.
pub(crate) fn submitted() {
    RECORDED.set(None);
}

/// Checks if the program has submitted a task to a stream since our last event. This is needed if no event of ours follows.
pub(crate) fn check_for_submitted(runtime: &Runtime) {
    let ours = RECORDED.get().map(|recorded| recorded.ours);
    if ours.is_some() && runtime.last_task() != ours {
        submitted();
    }
}

/// Returns true if a task that the program submits now may have the same ids as our last event, because a stream was created or destroyed since then.
pub(crate) fn may_repeat_record() -> bool {
    let recorded = RECORDED.get();
    recorded.is_some_and(|recorded| recorded.age != stream_cache::age())
}

/// Returns the thread's last task as it would be without our own events. `real` is what the runtime returned.
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
