//! What a program could notice of our calls on its own thread: they overwrite the thread's last error when they are refused, and its last task when they record an event. In: our calls.
//! Out: what the runtime would say without them, for an interposer to give to the program.

use super::{Code, DeviceRuntime, Event, Stream, Task};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

thread_local! {
    /// In our own calls: who surrounds them puts things right.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// One of our calls was refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    /// The program's own last error, which one of ours has overwritten; 0 for none.
    static OWED: Cell<Code> = const { Cell::new(0) };
    /// Our last record, and the program's last task before it.
    static RECORDED: Cell<Option<(Task, Task)>> = const { Cell::new(None) };
}

/// Whether an interposer gives the program what it would have been told without us.
static INTERPOSED: AtomicBool = AtomicBool::new(false);
/// Records since the program last asked for a task.
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
    if !is_interposed() || UNASKED.load(Ordering::Relaxed) >= PATIENCE {
        return runtime.record(event, stream);
    }
    UNASKED.fetch_add(1, Ordering::Relaxed);
    let programs = runtime.last_task().map(shown);
    let outcome = runtime.record(event, stream);
    RECORDED.set(runtime.last_task().zip(programs));
    outcome
}

/// The program has submitted a task. Ours is the last one no more, though a stream to come may have the same ids.
pub(crate) fn submitted() {
    RECORDED.set(None);
}

/// The last task that the program is to see where the runtime says `real`.
pub(crate) fn shown_task(real: Task) -> Task {
    UNASKED.store(0, Ordering::Relaxed);
    shown(real)
}

fn shown(real: Task) -> Task {
    match RECORDED.get() {
        Some((ours, programs)) if ours == real => programs,
        _ => real,
    }
}
