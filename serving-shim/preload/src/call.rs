//! The steps before and after a call of a real function. It is called exactly once, even if our part fails.

use crate::names::Name;
use crate::observe::{self, InterceptedLaunch, Wait};
use crate::real;
use crate::thread::{self, unnoticed};
use crate::visibility;

/// A call by the host.
#[derive(Debug)]
pub(crate) struct Call<F> {
    /// Name of the function.
    pub(crate) name: &'static str,
    /// Closure that calls the real function with the host's arguments, if the function exists.
    pub(crate) real: Option<F>,
    /// Return value if the function does not exist.
    pub(crate) missing: i32,
}

/// An open record of a call, from before the call until after it. If the call unwinds, the record is dropped as part of our own work.
struct OpenRecord<T>(Option<T>);

impl<T> OpenRecord<T> {
    fn end(mut self, end: impl FnOnce(T)) {
        if let Some(record) = self.0.take() {
            unnoticed(|| end(record));
        }
    }
}

impl<T> Drop for OpenRecord<T> {
    fn drop(&mut self) {
        if let Some(record) = self.0.take() {
            unnoticed(|| drop(record));
        }
    }
}

/// Returns true if an intercepted call must be recorded. `frame` is the address of its stack frame. The first call starts the recorder, which the host must
/// not notice.
fn is_recorded(frame: usize) -> bool {
    thread::is_outermost(frame)
        && unnoticed(|| real::is_first_copy() && observe::active()) == Some(true)
}

/// Returns true if intercepted calls that change a stream, graph or device must be observed. This is also done while nothing is recorded: our knowledge of
/// them must stay correct for the time when recording is switched on, and for launches that are resolved after a failure of ours.
fn is_observed() -> bool {
    thread::is_outside() && unnoticed(real::is_first_copy) == Some(true)
}

/// Calls the vendor's function that submits work to a device, and records the launch. Returns the function's result. Callers often repeat a refused call: it
/// counts as failed, and its span has the error.
#[inline(always)]
pub(crate) fn launch<'a>(
    call: Call<impl FnOnce() -> i32>,
    what: impl FnOnce() -> InterceptedLaunch,
    name: impl FnOnce() -> Name<'a>,
) -> i32 {
    let open = |api| {
        visibility::record_once();
        observe::launch(api, &what(), name)
    };
    record(call, open, |launch, result| launch.end(result))
}

/// Calls the vendor's function in which the host waits for a device, and records a span on the calling thread. Returns the function's result.
#[inline(always)]
pub(crate) fn wait(call: Call<impl FnOnce() -> i32>, what: impl FnOnce() -> Wait) -> i32 {
    let open = |api| Some(observe::wait(api, &what()));
    record(call, open, observe::end_wait)
}

/// Calls the vendor's function and returns its result. If the call is recorded, `open` gets the function's name before it, and `end` gets the record from
/// `open` and the result after it.
#[inline(always)]
fn record<T>(
    call: Call<impl FnOnce() -> i32>,
    open: impl FnOnce(&'static str) -> Option<T>,
    end: impl FnOnce(T, i32),
) -> i32 {
    match call.real {
        None => call.missing,
        Some(real) if !observe::may_be_active() => real(),
        Some(real) => recorded(thread::frame(), real, || open(call.name), end),
    }
}

/// Calls the vendor's function, between `open` and `end` if the call must be recorded. A separate function, so that a call while recording is off takes one
/// load and a jump.
#[inline(never)]
fn recorded<T>(
    frame: usize,
    real: impl FnOnce() -> i32,
    open: impl FnOnce() -> Option<T>,
    end: impl FnOnce(T, i32),
) -> i32 {
    if !is_recorded(frame) {
        return real();
    }
    let _inside = thread::Inside::new();
    let record = OpenRecord(unnoticed(open).flatten());
    let result = real();
    record.end(|record| end(record, result));
    result
}

/// Calls the vendor's function and returns its result. Runs `observe` before the call.
#[inline(always)]
pub(crate) fn observe_before(call: Call<impl FnOnce() -> i32>, observe: impl FnOnce()) -> i32 {
    observe_around(call, || (observe, |_| ()))
}

/// Calls the vendor's function and returns its result. Runs `observe` after the call if it succeeded.
#[inline(always)]
pub(crate) fn observe_after(call: Call<impl FnOnce() -> i32>, observe: impl FnOnce()) -> i32 {
    let Some(real) = call.real else {
        return call.missing;
    };
    let result = real();
    if result == 0 && is_observed() {
        unnoticed(observe);
    }
    result
}

/// Calls the vendor's function and returns its result. Runs the two functions that `observers` returns: one before the call, and one after it with the result.
#[inline(always)]
pub(crate) fn observe_around<B, A>(
    call: Call<impl FnOnce() -> i32>,
    observers: impl FnOnce() -> (B, A),
) -> i32
where
    B: FnOnce(),
    A: FnOnce(i32),
{
    let Some(real) = call.real else {
        return call.missing;
    };
    if !is_observed() {
        return real();
    }
    let (before, after) = observers();
    unnoticed(before);
    let result = real();
    unnoticed(|| after(result));
    result
}

/// Calls the vendor's function. `correct` changes its result to the one that the host would get without our own calls.
#[inline(always)]
pub(crate) fn correct_result(
    call: Call<impl FnOnce() -> i32>,
    correct: impl FnOnce(i32) -> i32,
) -> i32 {
    let Some(real) = call.real else {
        return call.missing;
    };
    let result = real();
    if !observe::answers_differ() || !is_observed() {
        return result;
    }
    unnoticed(|| correct(result)).unwrap_or(result)
}

/// Calls the vendor's function and returns its result. If it succeeds, `correct` changes the values that it wrote to those that the host would get without our
/// own calls.
#[inline(always)]
pub(crate) fn correct_output(call: Call<impl FnOnce() -> i32>, correct: impl FnOnce()) -> i32 {
    correct_result(call, |result| {
        if result == 0 {
            correct();
        }
        result
    })
}
