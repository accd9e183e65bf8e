//! What a program could notice of our calls on its own thread: they overwrite the thread's last error when they are refused, and its last task when they record an event. In: our calls.
//! Out: what the runtime would say without them, for an interposer to give to the program.

use super::{Code, DeviceRuntime, Event, Stream, Task, stream_cache};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

thread_local! {
    /// In our own calls: who surrounds them puts things right.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// One of our calls was refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    /// The program's own last error, which one of ours has overwritten; 0 for none.
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
    /// How often streams were made or went until then. A later one may have the ids of ours.
    age: u64,
}

/// Whether an interposer gives the program what it would have been told without us.
static INTERPOSED: AtomicBool = AtomicBool::new(false);
/// Whether the program has asked for a task.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Records before it did.
static UNASKED: AtomicU32 = AtomicU32::new(0);
/// So many are made before it is taken for a program that never asks: to look at the last task around each costs two calls.
const PATIENCE: u32 = 10_000;

/// An interposer is there.
pub(crate) fn interpose() {
    if !is_interposed() {
        INTERPOSED.store(true, Ordering::Relaxed);
    }
}

/// Whether one is.
pub(crate) fn is_interposed() -> bool {
    INTERPOSED.load(Ordering::Relaxed)
}

/// A call of ours was refused.
pub(crate) fn refused() {
    REFUSED.set(true);
}

/// Makes calls of ours that leave no error behind.
pub(crate) fn unnoticed<T>(runtime: &dyn DeviceRuntime, work: impl FnOnce() -> T) -> T {
    if AT_WORK.get() {
        return work();
    }
    unnoticed_after(runtime, runtime.last_error(), work)
}

/// The same where the thread's last error is known.
pub(crate) fn unnoticed_after<T>(
    runtime: &dyn DeviceRuntime,
    error: Code,
    work: impl FnOnce() -> T,
) -> T {
    /// Also where the work panics.
    struct Work<'a>(&'a dyn DeviceRuntime, Code);

    impl Drop for Work<'_> {
        fn drop(&mut self) {
            AT_WORK.set(false);
            if REFUSED.replace(false) {
                put_right(self.0, self.1);
            }
        }
    }

    if AT_WORK.replace(true) {
        return work();
    }
    REFUSED.set(false);
    let _work = Work(runtime, error);
    work()
}

/// Takes back what a refused call of ours has left, where the program's own error was this one.
fn put_right(runtime: &dyn DeviceRuntime, error: Code) {
    if error == 0 {
        runtime.forget_last_error();
    } else if is_interposed() {
        runtime.forget_last_error();
        OWED.set(error);
    } // else nobody could give it back: better a wrong error than none
}

/// The last error that the program is to see where the runtime says `real`. With `taken` it will not see it again.
pub(crate) fn shown_error(real: Code, taken: bool) -> Code {
    let owed = if taken { OWED.replace(0) } else { OWED.get() };
    if real == 0 { owed } else { real }
}

/// Puts an event into a stream, and remembers what task the program's last one was.
pub(crate) fn record(
    runtime: &dyn DeviceRuntime,
    event: Event,
    stream: Stream,
) -> Result<(), Code> {
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

/// Whether the program is taken for one that never asks for a task.
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

/// The program has submitted a task. Ours is the last one no more, though a stream to come may have the same ids.
pub(crate) fn submitted() {
    RECORDED.set(None);
}

/// The program may have submitted a task since our last record, and none of ours follows.
pub(crate) fn look_for_submitted(runtime: &dyn DeviceRuntime) {
    if let Some(recorded) = RECORDED.get()
        && runtime.last_task() != Some(recorded.ours)
    {
        submitted();
    }
}

/// Whether a task that the program submits now may have the ids of our last record: a stream was made or went since, so a later one may be another with its id.
pub(crate) fn may_repeat_record() -> bool {
    let recorded = RECORDED.get();
    recorded.is_some_and(|recorded| recorded.age != stream_cache::age())
}

/// The last task that the program is to see where the runtime says `real`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Launch;

    const OURS: Task = Task { stream: 3, id: 7 };
    const PROGRAMS: Task = Task { stream: 3, id: 6 };

    fn recorded() {
        RECORDED.set(Some(Recorded {
            ours: OURS,
            programs: PROGRAMS,
            age: stream_cache::age(),
        }));
    }

    #[test]
    fn a_task_of_a_later_stream_with_the_ids_of_our_record_is_the_programs() {
        recorded();
        assert!(!may_repeat_record());
        stream_cache::change();
        assert!(may_repeat_record());
        Launch::off().end(107_017);
        assert_eq!(shown(OURS), PROGRAMS, "nothing was submitted since");
        Launch::off().end(0);
        assert_eq!(shown(OURS), OURS);
    }

    #[test]
    fn who_has_asked_once_is_tracked_for_good() {
        let absent = crate::runtime::absent::Absent;
        let records = |number| {
            for _ in 0..number {
                let _ = record(&absent, Event(1), Stream(1));
            }
        };
        interpose();
        records(PATIENCE + 1);
        assert!(is_never_asked());
        recorded();
        records(1);
        assert_eq!(
            shown_task(OURS),
            OURS,
            "an old record is none of the last task"
        );
        records(PATIENCE + 1);
        assert!(!is_never_asked());
    }
}
