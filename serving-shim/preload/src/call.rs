//! What happens around a call, and in which order. The real function is called exactly once, whatever becomes of our part.

use crate::names::Name;
use crate::observe::{self, Seen, Wait};
use crate::reach;
use crate::real;
use crate::thread::{self, unnoticed};

/// A call of the host's.
#[derive(Debug)]
pub(crate) struct Call<F> {
    /// The function's name.
    pub(crate) name: &'static str,
    /// Calls the real function with the host's arguments, if there is one.
    pub(crate) real: Option<F>,
    /// What is returned if there is none.
    pub(crate) missing: i32,
}

/// What our own work made before a call and ends after it. Where the call unwinds instead, letting go of it is our own work too.
struct Kept<T>(Option<T>);

impl<T> Kept<T> {
    fn end(mut self, how: impl FnOnce(T)) {
        if let Some(kept) = self.0.take() {
            unnoticed(|| how(kept));
        }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if let Some(kept) = self.0.take() {
            unnoticed(|| drop(kept));
        }
    }
}

/// Whether the call whose frame is at this address is to be recorded. The first look starts the recorder, which the host must not notice.
fn is_recorded(frame: usize) -> bool {
    thread::is_outermost(frame)
        && unnoticed(|| real::is_first_copy() && observe::active()) == Some(true)
}

/// Whether what happens to a stream, graph or device is to be reported, recorded or not. What is known of it must stay true for when recording is
/// switched on, and for the launches that are resolved after a failure of ours.
fn is_told() -> bool {
    thread::is_outside() && unnoticed(real::is_first_copy) == Some(true)
}

/// Work given to a device. A call that is refused is often tried again: it counts as failed, and its span has the error.
#[inline(always)]
pub(crate) fn launch<'a>(
    call: Call<impl FnOnce() -> i32>,
    what: impl FnOnce() -> Seen,
    name: impl FnOnce() -> Name<'a>,
) -> i32 {
    let open = |api| {
        reach::look_once();
        observe::launch(api, &what(), name)
    };
    record(call, open, |launch, result| launch.end(result))
}

/// A call in which the host waits for a device: a span of the calling thread.
#[inline(always)]
pub(crate) fn wait(call: Call<impl FnOnce() -> i32>, what: impl FnOnce() -> Wait) -> i32 {
    let open = |api| Some(observe::wait(api, &what()));
    record(call, open, observe::waited)
}

/// Makes a call. While it is recorded, `open` gets the function's name before it, and `end` what `open` returned and the call's result after it.
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

/// Apart, so that a call with recording off is one load and a jump.
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
    let kept = Kept(unnoticed(open).flatten());
    let result = real();
    kept.end(|kept| end(kept, result));
    result
}

/// A call before which somebody must know of it.
#[inline(always)]
pub(crate) fn tell_before(call: Call<impl FnOnce() -> i32>, what: impl FnOnce()) -> i32 {
    tell_around(call, || (what, |_| ()))
}

/// A call after which somebody must know of it, if it succeeded.
#[inline(always)]
pub(crate) fn tell_after(call: Call<impl FnOnce() -> i32>, what: impl FnOnce()) -> i32 {
    let Some(real) = call.real else {
        return call.missing;
    };
    let result = real();
    if result == 0 && is_told() {
        unnoticed(what);
    }
    result
}

/// A call with something to be said before it, and with its result after it.
#[inline(always)]
pub(crate) fn tell_around<B, A>(
    call: Call<impl FnOnce() -> i32>,
    what: impl FnOnce() -> (B, A),
) -> i32
where
    B: FnOnce(),
    A: FnOnce(i32),
{
    let Some(real) = call.real else {
        return call.missing;
    };
    if !is_told() {
        return real();
    }
    let (before, after) = what();
    unnoticed(before);
    let result = real();
    unnoticed(|| after(result));
    result
}

/// A call whose answer the host is to get as it would be without us.
#[inline(always)]
pub(crate) fn answered(call: Call<impl FnOnce() -> i32>, answer: impl FnOnce(i32) -> i32) -> i32 {
    let Some(real) = call.real else {
        return call.missing;
    };
    let result = real();
    if !observe::answers_differ() || !is_told() {
        return result;
    }
    unnoticed(|| answer(result)).unwrap_or(result)
}

/// A call that has written an answer, if it succeeded, which is to be as it would be without us.
#[inline(always)]
pub(crate) fn corrected(call: Call<impl FnOnce() -> i32>, correct: impl FnOnce()) -> i32 {
    answered(call, |result| {
        if result == 0 {
            correct();
        }
        result
    })
}
