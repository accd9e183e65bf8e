//! Async spans, which may end on another thread, by handle.

use std::ffi::c_char;

use sa_recorder::AsyncSpanId;

use crate::arg::{self, Arg};
use crate::call::guarded;
use crate::handle;
use crate::level::{self, Level};
use crate::text;

/// A span that may begin on one thread and end on any other of the process. Only a number: ending it twice, or in the child of a fork, does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncSpan {
    /// 0 if the span is not recorded. Other values have a meaning only to this library.
    pub id: u64,
}

impl AsyncSpan {
    const fn recorded(self) -> AsyncSpanId {
        AsyncSpanId::from_number(self.id)
    }
}

/// Begins a span that may end on another thread, on the lowest free lane of the process. A span that is never ended is shown as unfinished. At most 65536 of them
/// may be open in a process; more are dropped and counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_begin(
    level: Level,
    category: *const c_char,
    name: *const c_char,
) -> AsyncSpan {
    // SAFETY: guaranteed by the caller; there are no args.
    unsafe { sa_profile_async_span_begin_args(level, category, name, std::ptr::null(), 0) }
}

/// Begins a span like `sa_profile_async_span_begin`, with `count` args.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_begin_args(
    level: Level,
    category: *const c_char,
    name: *const c_char,
    args: *const Arg,
    count: usize,
) -> AsyncSpan {
    let Some(level) = level::enabled(level) else {
        return AsyncSpan { id: 0 };
    };
    let begun = guarded(AsyncSpanId::NONE, || {
        // SAFETY: guaranteed by the caller.
        let category = unsafe { text::name(category) };
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        // SAFETY: guaranteed by the caller.
        let args = (count > 0).then(|| unsafe { arg::args(args, count) });
        let begun = AsyncSpanId::begin(level, &category, &name); // reads the clock: the span should not begin later because of its args
        if let Some(args) = args {
            begun.args(&args);
        }
        begun
    });
    AsyncSpan { id: begun.number() }
}

/// Adds `count` args. Args may be added until the span ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_args(
    span: AsyncSpan,
    args: *const Arg,
    count: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add_all(span.recorded(), args, count) };
}

/// Adds an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_int(
    span: AsyncSpan,
    key: *const c_char,
    value: i64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds an unsigned integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_uint(
    span: AsyncSpan,
    key: *const c_char,
    value: u64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds a number; NaN and infinities become `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_double(
    span: AsyncSpan,
    key: *const c_char,
    value: f64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds `true` or `false`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_bool(
    span: AsyncSpan,
    key: *const c_char,
    value: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_async_span_arg_string(
    span: AsyncSpan,
    key: *const c_char,
    value: *const c_char,
) {
    // SAFETY: guaranteed by the caller.
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
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add_string_n(span.recorded(), key, value, length) };
}

/// Ends the span. Does nothing if the span has already ended or never began.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_async_span_end(span: AsyncSpan) {
    handle::end(span.recorded());
}
