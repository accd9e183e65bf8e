//! Operations on the handles of spans and async spans.

use std::ffi::c_char;

use sa_recorder::{Args, AsyncSpanId, SpanId, Value};

use crate::arg::{self, Arg};
use crate::cache;
use crate::call::{guarded, guarded_memory};
use crate::text;

/// The id of a span or async span.
pub(crate) trait Handle: Copy {
    /// Calls `act` with the span. A panic in it does not reach the caller.
    fn guarded(self, act: impl FnOnce(Self));
    /// Returns true if the span was recorded when it began.
    fn is_recorded(self) -> bool;
    /// Adds an arg to the span.
    fn arg(self, key: &str, value: impl Value);
    /// Adds an arg to the span. Its key is already encoded as JSON text, with the colon.
    fn arg_with_encoded_key(self, key: &str, value: &impl Value);
    /// Adds several args to the span.
    fn args(self, args: &Args);
    /// Ends the span.
    fn end(self);
}

macro_rules! handles {
    ($($id:ty, $guarded:path;)*) => {$(
        impl Handle for $id {
            #[inline(always)]
            fn guarded(self, act: impl FnOnce(Self)) {
                $guarded((), || act(self));
            }

            #[inline(always)]
            fn is_recorded(self) -> bool {
                self.is_some()
            }

            fn arg(self, key: &str, value: impl Value) {
                self.arg(key, value);
            }

            #[inline(always)]
            fn arg_with_encoded_key(self, key: &str, value: &impl Value) {
                self.arg_with_encoded_key(key, value);
            }

            fn args(self, args: &Args) {
                self.args(args);
            }

            #[inline(always)]
            fn end(self) {
                self.end();
            }
        }
    )*};
}
handles!(SpanId, guarded_memory; AsyncSpanId, guarded;);

/// Adds an arg to a span. Its key comes from C.
///
/// # Safety
///
/// `key` is null or a C string.
#[inline]
pub(crate) unsafe fn add(span: impl Handle, key: *const c_char, value: impl Value) {
    if span.is_recorded() {
        span.guarded(|span| {
            // SAFETY: guaranteed by the caller.
            if let Some(key) = unsafe { cache::key_json(key) } {
                return span.arg_with_encoded_key(key, &value);
            }
            // SAFETY: guaranteed by the caller.
            span.arg(&unsafe { cache::insert_key(key) }, value);
        });
    }
}

/// Adds an arg to a span. Its value is a C string.
///
/// # Safety
///
/// Both pointers are null or C strings.
pub(crate) unsafe fn add_string(span: impl Handle, key: *const c_char, value: *const c_char) {
    if span.is_recorded() {
        span.guarded(|span| {
            // SAFETY: guaranteed by the caller.
            let key = unsafe { text::name(key) };
            // SAFETY: guaranteed by the caller.
            let value = unsafe { text::optional(value) };
            span.arg(&key, value.as_deref());
        });
    }
}

/// Adds an arg to a span. Its value is a string of `length` bytes.
///
/// # Safety
///
/// `key` is null or a C string; `value` is null, or `length` bytes are readable there.
pub(crate) unsafe fn add_string_n(
    span: impl Handle,
    key: *const c_char,
    value: *const c_char,
    length: usize,
) {
    if span.is_recorded() {
        span.guarded(|span| {
            // SAFETY: guaranteed by the caller.
            let key = unsafe { text::name(key) };
            // SAFETY: guaranteed by the caller.
            let value = unsafe { text::counted(value, length) };
            span.arg(&key, value.as_deref());
        });
    }
}

/// Adds all args in a C array of `count` args to a span.
///
/// # Safety
///
/// The same as for [`arg::args`].
pub(crate) unsafe fn add_all(span: impl Handle, args: *const Arg, count: usize) {
    if span.is_recorded() {
        span.guarded(|span| {
            // SAFETY: guaranteed by the caller.
            let args = unsafe { arg::args(args, count) };
            span.args(&args);
        });
    }
}

/// Ends a span or async span, if it was recorded when it began.
#[inline]
pub(crate) fn end(span: impl Handle) {
    if span.is_recorded() {
        span.guarded(Handle::end);
    }
}
