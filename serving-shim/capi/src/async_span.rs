//! Spans that live across threads and awaits, by handle.

use std::ffi::c_char;

use sa_recorder::AsyncSpanId;

use crate::arg::{self, Arg};
use crate::call::guarded;
use crate::handle;
use crate::level::{self, Level};
use crate::text;

/// A span that may move: begun on one thread, ended on any other of the process. Only a number: to end it twice, or in the child of a fork, does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncSpan {
    /// 0 if it is not recorded; else of use to this library only.
    pub id: u64,
}

impl AsyncSpan {
    const fn recorded(self) -> AsyncSpanId {
        AsyncSpanId::of_number(self.id)
    }
}

/// Begins a span that may end on another thread, on the lowest free lane of the process. One that is never ended shows as unfinished; 65536 may be open at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_begin(
    level: Level,
    category: *const c_char,
    name: *const c_char,
) -> AsyncSpan {
    // SAFETY: the caller's; there are no args.
    unsafe { sa_profile_async_span_begin_args(level, category, name, std::ptr::null(), 0) }
}

/// Begins a span as `sa_profile_async_span_begin` does, with `count` args.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_begin_args(
    level: Level,
    category: *const c_char,
    name: *const c_char,
    args: *const Arg,
    count: usize,
) -> AsyncSpan {
    let Some(level) = level::wanted(level) else {
        return AsyncSpan { id: 0 };
    };
    let begun = guarded(AsyncSpanId::NONE, || {
        // SAFETY: the caller's.
        let category = unsafe { text::name(category) };
        // SAFETY: the caller's.
        let name = unsafe { text::name(name) };
        // SAFETY: the caller's.
        let args = (count > 0).then(|| unsafe { arg::args(args, count) });
        let begun = AsyncSpanId::begin(level, &category, &name); // with the clock, which the args shall not cost time
        if let Some(args) = args {
            begun.args(&args);
        }
        begun
    });
    AsyncSpan { id: begun.number() }
}

/// Adds `count` args; they may be added until the span ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_args(
    span: AsyncSpan,
    args: *const Arg,
    count: usize,
) {
    // SAFETY: the caller's.
    unsafe { handle::add_all(span.recorded(), args, count) };
}

/// Adds an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_int(
    span: AsyncSpan,
    key: *const c_char,
    value: i64,
) {
    // SAFETY: the caller's.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds an integer that is not negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_uint(
    span: AsyncSpan,
    key: *const c_char,
    value: u64,
) {
    // SAFETY: the caller's.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds a number; NaN and infinities become `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_double(
    span: AsyncSpan,
    key: *const c_char,
    value: f64,
) {
    // SAFETY: the caller's.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds `true` or `false`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_bool(
    span: AsyncSpan,
    key: *const c_char,
    value: bool,
) {
    // SAFETY: the caller's.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_string(
    span: AsyncSpan,
    key: *const c_char,
    value: *const c_char,
) {
    // SAFETY: the caller's.
    unsafe { handle::add_string(span.recorded(), key, value) };
}

/// Adds a string of `length` bytes, NUL bytes included; a null pointer becomes `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_string_n(
    span: AsyncSpan,
    key: *const c_char,
    value: *const c_char,
    length: usize,
) {
    // SAFETY: the caller's.
    unsafe { handle::add_string_n(span.recorded(), key, value, length) };
}

/// Ends the span. Does nothing if it has ended already, or never began.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_async_span_end(span: AsyncSpan) {
    handle::end(span.recorded());
}
