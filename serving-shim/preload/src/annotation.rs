//! Annotations that a program makes through mstx: ranges become async spans, marks become instants.
//!
//! The calls are forwarded to the vendor's library if it is loaded. If it is not loaded, or returns no ids because none of the vendor's tools is active, we
//! return our own ids while something is recorded. These ids are never passed to the vendor's library.

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

/// Forwards a call of `mstxMarkA` or `mstxDomainMarkA` to the vendor's library, and records an instant.
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
        let record = || {
            let args = args_of(stream, domain);
            Recorder::get().instant(Level::E2e, CATEGORY, &text(message), &args);
        };
        unnoticed(record);
    }
}

/// Forwards a call of `mstxRangeStartA` or `mstxDomainRangeStartA` to the vendor's library, and begins an async span. Returns the vendor's id of the range, or
/// one of our own if the vendor returned none.
pub(crate) fn range_start(
    real: Option<impl FnOnce() -> u64>,
    domain: Option<*mut c_void>,
    message: *const c_char,
    stream: *mut c_void,
) -> u64 {
    let real = real.filter(|_| !domain.is_some_and(domain::is_our_own));
    let vendor_id = real.map_or(0, |real| real());
    if !is_recorded() {
        return vendor_id;
    }
    let begin = || {
        let span = AsyncSpanId::begin(Level::E2e, CATEGORY, &text(message));
        span.args(&args_of(stream, domain));
        RANGES.begin(vendor_id, span)
    };
    unnoticed(begin).unwrap_or(vendor_id)
}

/// Forwards a call of `mstxRangeEnd` or `mstxDomainRangeEnd` to the vendor's library, and ends the async span of the range `id`.
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

/// Returns true if the program's mstx annotations (ranges and marks) are recorded.
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
    match names::from_text(message) {
        names::Name::Text(message) => CStr::to_string_lossy(message),
        _ => Cow::Borrowed("(no message)"),
    }
}
