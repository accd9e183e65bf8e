//! Spans of the calling thread, by handle.

use std::ffi::c_char;

use sa_recorder::{Args, SpanId};

use crate::arg::{self, Arg};
use crate::cache;
use crate::call::{guarded, guarded_memory};
use crate::handle;
use crate::level::{self, Level};
use crate::text;

/// A span of the thread that began it. Only a number: ending it twice, on another thread, or in the child of a fork does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// 0 if the span is not recorded. Other values have a meaning only to this library.
    pub id: u64,
}

impl Span {
    const fn recorded(self) -> SpanId {
        SpanId::from_number(self.id)
    }
}

/// Begins a span on the calling thread. A span that is never ended is shown as unfinished. At most 4096 spans of a thread may be open; more are dropped and counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_begin(
    level: Level,
    category: *const c_char,
    name: *const c_char,
) -> Span {
    let Some(level) = level::enabled(level) else {
        return Span { id: 0 };
    };
    let fast = guarded_memory(None, || {
        // SAFETY: guaranteed by the caller.
        SpanId::begin_site(unsafe { cache::site(level, category, name) }?, None)
    });
    if let Some(begun) = fast {
        return Span { id: begun.number() };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { begin_by_name(level, category, name, &Args::new()) }
}

/// Begins a span whose name is not cached: the first one of a thread, the first one with a name, or one whose name cannot be cached.
///
/// # Safety
///
/// Both pointers are null or C strings.
#[cold]
unsafe fn begin_by_name(
    level: sa_recorder::Level,
    category: *const c_char,
    name: *const c_char,
    args: &Args,
) -> Span {
    let begun = guarded(SpanId::NONE, || {
        let pointers = (category, name);
        // SAFETY: guaranteed by the caller.
        let category = unsafe { text::name(category) };
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        cache::insert_site(level, pointers, [&category, &name]);
        SpanId::begin_args(level, &category, &name, args)
    });
    Span { id: begun.number() }
}

/// Begins a span like `sa_profile_span_begin`, with `count` args.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_begin_args(
    level: Level,
    category: *const c_char,
    name: *const c_char,
    args: *const Arg,
    count: usize,
) -> Span {
    let Some(level) = level::enabled(level) else {
        return Span { id: 0 };
    };
    guarded_memory(Span { id: 0 }, || {
        // SAFETY: guaranteed by the caller.
        let args = unsafe { arg::args(args, count) };
        // SAFETY: guaranteed by the caller.
        let site = unsafe { cache::site(level, category, name) };
        match site.and_then(|site| SpanId::begin_site(site, Some(&args))) {
            Some(begun) => Span { id: begun.number() },
            // SAFETY: guaranteed by the caller.
            None => unsafe { begin_by_name(level, category, name, &args) },
        }
    })
}

/// Adds `count` args. Args may be added until the span ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_args(span: Span, args: *const Arg, count: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add_all(span.recorded(), args, count) };
}

/// Adds an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_arg_int(span: Span, key: *const c_char, value: i64) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds an unsigned integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_arg_uint(span: Span, key: *const c_char, value: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds a number; NaN and infinities become `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_arg_double(span: Span, key: *const c_char, value: f64) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds `true` or `false`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_arg_bool(span: Span, key: *const c_char, value: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add(span.recorded(), key, value) };
}

/// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_arg_string(
    span: Span,
    key: *const c_char,
    value: *const c_char,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add_string(span.recorded(), key, value) };
}

/// Adds a string of `length` bytes, NUL bytes included; a null pointer becomes `null`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_span_arg_string_n(
    span: Span,
    key: *const c_char,
    value: *const c_char,
    length: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { handle::add_string_n(span.recorded(), key, value, length) };
}

/// Ends the span. Does nothing if the span has already ended or never began.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_span_end(span: Span) {
    handle::end(span.recorded());
}
