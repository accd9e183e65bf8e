//! What a program marks by itself through mstx: ranges become spans on lanes of their own, marks become instants.
//!
//! The calls go on to the vendor's library where it is loaded. It may not be loaded, or hand out no ids because no tool of the vendor's listens. Then
//! ids of our own take their place while something is recorded. They never reach the vendor's library.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};

use sa_recorder::{Args, AsyncSpanId, Level, Recorder};

use crate::thread::{self, unnoticed};
use crate::{names, real};
use ranges::Ranges;

pub(crate) mod domain;
mod ranges;

const CATEGORY: &str = "mstx";

static RANGES: Ranges = Ranges::new();

/// `mstxMarkA` and `mstxDomainMarkA`.
pub(crate) fn mark(
    real: Option<impl FnOnce()>,
    domain: Option<*mut c_void>,
    message: *const c_char,
    stream: *mut c_void,
) {
    if let Some(real) = real.filter(|_| !domain.is_some_and(domain::is_our_own)) {
        real();
    }
    if is_recorded() {
        let tell = || {
            let args = args_of(stream, domain);
            Recorder::get().instant(Level::E2e, CATEGORY, &text(message), &args);
        };
        unnoticed(tell);
    }
}

/// `mstxRangeStartA` and `mstxDomainRangeStartA`. Returns the id of the range: the vendor's, else one of our own.
pub(crate) fn range_start(
    real: Option<impl FnOnce() -> u64>,
    domain: Option<*mut c_void>,
    message: *const c_char,
    stream: *mut c_void,
) -> u64 {
    let real = real.filter(|_| !domain.is_some_and(domain::is_our_own));
    let given = real.map_or(0, |real| real());
    if !is_recorded() {
        return given;
    }
    let begin = || {
        let span = AsyncSpanId::begin(Level::E2e, CATEGORY, &text(message));
        span.args(&args_of(stream, domain));
        RANGES.begin(given, span)
    };
    unnoticed(begin).unwrap_or(given)
}

/// `mstxRangeEnd` and `mstxDomainRangeEnd`.
pub(crate) fn range_end(real: Option<impl FnOnce()>, id: u64) {
    if let Some(real) = real.filter(|_| !ranges::is_our_own(id)) {
        real();
    }
    if thread::is_outside() {
        let span = RANGES.end(id);
        if span.is_some() {
            unnoticed(|| span.end());
        }
    }
}

/// Whether annotations are recorded.
fn is_recorded() -> bool {
    let is_on = || real::is_first_copy() && Recorder::get().includes(Level::E2e);
    sa_recorder::__wants(Level::E2e) && thread::is_whole() && unnoticed(is_on) == Some(true)
}

fn args_of(stream: *mut c_void, domain: Option<*mut c_void>) -> Args {
    let mut args = Args::new();
    if let Some(domain) = domain.and_then(domain::name_of) {
        args.push("domain", &domain);
    }
    if !stream.is_null() {
        args.push("handle", &format!("{stream:?}"));
    }
    args
}

fn text<'a>(message: *const c_char) -> Cow<'a, str> {
    match names::of_text(message) {
        names::Name::Text(message) => CStr::to_string_lossy(message),
        _ => Cow::Borrowed("(no message)"),
    }
}
