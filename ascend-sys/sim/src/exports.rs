//! The exported functions. They check pointers and catch panics; all other code is safe and in other modules.

mod device;
mod event;
mod graph;
mod hal;
mod hccl;
mod init;
mod kernel;
mod launch;
mod memory;
mod model;
mod mspti;
mod mstx;
mod rt_launch;
mod stream;
mod thread;

// Imports for the groups.
use crate::config::config;
use crate::faults::Site;
use crate::runtime::runtime;
use crate::work::Work;
use crate::{Outcome, context, fail_if, outcome};
use ascend_sys::acl;
use ascend_sys::codes::{self, *};
use ascend_sys::types::*;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Marks this library as the simulated runtime. `ascend_sys::SIMULATOR_MARKER` is its name.
// SAFETY: no other library exports this name.
#[unsafe(no_mangle)]
static ascend_sim_marker: u8 = 1;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of calls that the calling thread has made, for tests that count a profiler's calls.
// SAFETY: no other library exports this name.
#[unsafe(no_mangle)]
extern "C" fn ascend_sim_calls() -> u64 {
    CALLS.get()
}

/// Counts a call.
fn count_call() {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1)); // the thread may be ending
}

/// Exports functions of one group. Their signatures are checked against the types in `ascend-sys`. `$result` converts an outcome to an error code.
macro_rules! exports {
    ($library:ident::$group:ident, $result:path; $(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            // SAFETY: the simulator replaces the library that exports this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
                $(
                    // SAFETY: as with the vendor's runtime, the caller guarantees that its pointers are valid.
                    let $arg = unsafe { $crate::exports::Argument::checked($arg) };
                )*
                $result($crate::exports::guarded(move || $body))
            }

            const _: $library::$group::$name = $name;
        )*
    };
}
use exports;

/// Runs an exported function. A panic becomes an internal error of the runtime.
fn guarded(call: impl FnOnce() -> Outcome) -> Outcome {
    count_call();
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(ACL_ERROR_INTERNAL_ERROR));
    if let Err(code) = outcome {
        let name = codes::name_of(code).unwrap_or("unknown error");
        let text = CString::new(format!("EE9999: simulated: {code} {name}")).unwrap_or_default();
        let _ = LAST_ERROR.try_with(|last| last.replace(text)); // the thread may be ending
    }
    outcome
}

/// Converts an outcome to an error code of ACL and the rt level.
fn code(outcome: Outcome) -> c_int {
    let failed = outcome
        .inspect_err(|code| thread::record_error(*code))
        .err();
    failed.unwrap_or(ACL_SUCCESS)
}

/// An argument of an exported function.
trait Argument {
    /// The type in which the function uses the argument.
    type Checked;

    /// Converts the argument to its checked type.
    ///
    /// # Safety
    ///
    /// A pointer must be null or point to a value of the type in the function's signature until the call returns.
    unsafe fn checked(self) -> Self::Checked;
}

/// A pointer to a value that a function writes, or a handle.
struct Out<T>(*mut T);

/// A pointer to a value that a function reads.
struct In<T>(*const T);

impl<T> Argument for *mut T {
    type Checked = Out<T>;

    unsafe fn checked(self) -> Out<T> {
        Out(self)
    }
}

impl<T> Argument for *const T {
    type Checked = In<T>;

    unsafe fn checked(self) -> In<T> {
        In(self)
    }
}

/// Implements [`Argument`] for types that are not pointers to data.
macro_rules! plain_arguments {
    ($($type:ty),*) => {
        $(impl Argument for $type {
            type Checked = Self;

            unsafe fn checked(self) -> Self {
                self
            }
        })*
    };
}

plain_arguments! {
    i32, u32, u64, usize, aclrtCallback, aclrtDeviceStateCallback, aclrtStreamStateCallback, aclFinalizeCallbackFunc,
    msptiCallbackFunc, msptiBuffersCallbackRequestFunc, msptiBuffersCallbackCompleteFunc
}

impl<T> Out<T> {
    fn put(&self, value: T) -> Outcome {
        self.not_null()?;
        // SAFETY: not null, and therefore writable, as `checked` requires.
        unsafe { self.0.write(value) };
        Ok(())
    }

    fn get(&self) -> Outcome<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    fn not_null(&self) -> Outcome {
        In(self.0.cast_const()).not_null()
    }

    /// Returns an element of a list.
    fn at(&self, index: usize) -> Outcome<T>
    where
        T: Copy,
    {
        self.not_null()?;
        Self(self.0.wrapping_add(index)).get()
    }

    /// Writes consecutive values. The program must have room for them.
    fn put_all(&self, values: impl Iterator<Item = T>) -> Outcome {
        let mut indexed = values.enumerate();
        indexed.try_for_each(|(index, value)| Self(self.0.wrapping_add(index)).put(value))
    }

    /// Returns the address as a number, for work that runs after the call.
    fn address(&self) -> usize {
        self.0.expose_provenance()
    }
}

impl<T> In<T> {
    fn not_null(&self) -> Outcome {
        fail_if(self.0.is_null(), ACL_ERROR_RT_PARAM_INVALID)
    }

    fn get(&self) -> Outcome<T>
    where
        T: Copy,
    {
        self.not_null()?;
        // SAFETY: not null, and therefore readable, as `checked` requires. It may be misaligned.
        Ok(unsafe { self.0.read_unaligned() })
    }

    fn address(&self) -> usize {
        self.0.expose_provenance()
    }
}

impl In<c_char> {
    fn text(&self) -> Outcome<String> {
        self.not_null()?;
        // SAFETY: not null, and therefore a C string, as `checked` requires.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

impl Out<c_char> {
    /// Writes a C string of at most `length` bytes, including the NUL byte.
    fn put_text(&self, text: &str, length: usize) -> Outcome {
        fail_if(length == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        let bytes = text.bytes().take(length - 1).chain([0]);
        self.put_all(bytes.map(|byte| byte.cast_signed() as c_char))
    }
}

/// Converts a time limit in ms; -1 means no limit.
fn timeout(ms: i32) -> Outcome<Option<u64>> {
    match ms {
        -1 => Ok(None),
        _ => u64::try_from(ms)
            .map(Some)
            .map_err(|_| ACL_ERROR_RT_PARAM_INVALID),
    }
}
