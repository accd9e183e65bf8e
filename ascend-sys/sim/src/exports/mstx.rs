//! Annotations: ranges have ids, and marks on a stream are tasks of it.

use super::*;
use std::ffi::CStr;
use std::sync::atomic::Ordering;

/// Exports functions that answer with something else than a code. Each is checked against its type.
macro_rules! annotations {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        $(
            // SAFETY: the simulator replaces the library that exports this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> $result {
                $(
                    // SAFETY: the caller vouches for what its pointers point to.
                    let $arg = unsafe { Argument::checked($arg) };
                )*
                $body
            }

            const _: ascend_sys::mstx::$name = $name;
        )*
    };
}

/// A domain is its name's place: all of them are the same to the simulator.
const DOMAIN: &CStr = c"simulated";

annotations! {
    fn mstxMarkA(message: *const c_char, stream: aclrtStream) -> () {
        mark(message, stream.0);
    }

    fn mstxRangeStartA(message: *const c_char, stream: aclrtStream) -> mstxRangeId {
        start(message, stream.0)
    }

    fn mstxRangeEnd(_range: mstxRangeId) -> () {}

    fn mstxDomainCreateA(_name: *const c_char) -> mstxDomainHandle_t {
        DOMAIN.as_ptr().cast_mut().cast()
    }

    fn mstxDomainDestroy(_domain: mstxDomainHandle_t) -> () {}

    fn mstxDomainMarkA(_domain: mstxDomainHandle_t, message: *const c_char, stream: aclrtStream) -> () {
        mark(message, stream.0);
    }

    fn mstxDomainRangeStartA(_domain: mstxDomainHandle_t, message: *const c_char, stream: aclrtStream) -> mstxRangeId {
        start(message, stream.0)
    }

    fn mstxDomainRangeEnd(_domain: mstxDomainHandle_t, _range: mstxRangeId) -> () {}
}

/// Marks a stream; without a stream it does nothing. An annotation that fails is ignored.
fn mark(message: In<c_char>, stream: aclrtStream) {
    if stream.is_null() {
        return;
    }
    let _ = guarded(|| {
        let name = message.text()?.into();
        runtime().stream_here(stream)?.submit(Work::Mark { name })
    });
}

fn start(message: In<c_char>, stream: aclrtStream) -> mstxRangeId {
    if message.not_null().is_err() {
        return 0;
    }
    mark(message, stream);
    runtime().ranges.fetch_add(1, Ordering::Relaxed) + 1
}
