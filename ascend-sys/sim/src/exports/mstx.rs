//! Annotations. Ranges have ids, and marks on a stream are tasks of the stream.

use super::*;
use std::ffi::CStr;
use std::sync::atomic::Ordering;

/// Exports functions whose result is not an error code. Their signatures are checked against the types in `ascend-sys`.
macro_rules! annotations {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        $(
            // SAFETY: the simulator replaces the library that exports this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> $result {
                $(
                    // SAFETY: the caller guarantees that its pointers are valid.
                    let $arg = unsafe { Argument::checked($arg) };
                )*
                $body
            }

            const _: ascend_sys::mstx::$name = $name;
        )*
    };
}

/// The domain whose address is the handle of every domain, because the simulator does not distinguish them.
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

/// Submits a mark to a stream. Does nothing without a stream. A failure is ignored.
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
