//! Measures the cost of recording through the C API, compared with two clock reads, the lowest possible cost: `cargo bench -p sa-profile-capi --bench capi [-- --quick]`.
//!
//! The calls go through the shared library, loaded as a C program loads it. There is one recorder per process, so every case runs in new child
//! processes of this binary. Prints lines `RESULT <case> <ns> <ratio_to_two_clock_reads>` with medians over the rounds.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use measure::cases::{self, Case, Subject};
use sa_profile::{Arg, ArgValue, SA_PROFILE_ARG_DOUBLE, SA_PROFILE_ARG_INT, SA_PROFILE_ARG_STRING};
use sa_profile::{Level, SA_PROFILE_LEVEL_E2E, Span};

const CATEGORY: *const c_char = c"bench".as_ptr();
const NAME: *const c_char = c"decode".as_ptr();

const CASES: [Case<Library>; 4] = [
    Case::new("capi_span", Library::spans),
    Case::new("capi_span_3args", Library::spans_with_args),
    Case::new("capi_instant", Library::instants),
    Case::silent("capi_disabled", Library::spans, false),
];

fn main() -> ExitCode {
    cases::run(&CASES)
}

/// The measured functions, looked up by name in the shared library.
struct Library {
    begin: unsafe extern "C" fn(Level, *const c_char, *const c_char) -> Span,
    begin_args:
        unsafe extern "C" fn(Level, *const c_char, *const c_char, *const Arg, usize) -> Span,
    arg_int: unsafe extern "C" fn(Span, *const c_char, i64),
    end: extern "C" fn(Span),
    instant: unsafe extern "C" fn(Level, *const c_char, *const c_char, *const Arg, usize),
    is_enabled: extern "C" fn() -> bool,
    flush: extern "C" fn(),
    dropped: extern "C" fn() -> u64,
}

impl Subject for Library {
    /// Loads the library that cargo built next to this program.
    fn start() -> Result<Library, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let path = program.with_file_name("libsa_profile.so");
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: a C string; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("{} cannot be loaded", path.display()));
        }
        Ok(Library {
            begin: find(handle, c"sa_profile_span_begin")?,
            begin_args: find(handle, c"sa_profile_span_begin_args")?,
            arg_int: find(handle, c"sa_profile_span_arg_int")?,
            end: find(handle, c"sa_profile_span_end")?,
            instant: find(handle, c"sa_profile_instant")?,
            is_enabled: find(handle, c"sa_profile_is_enabled")?,
            flush: find(handle, c"sa_profile_flush")?,
            dropped: find(handle, c"sa_profile_dropped")?,
        })
    }

    fn is_enabled(&self) -> bool {
        (self.is_enabled)()
    }

    fn settle(&self) {
        (self.flush)();
    }

    fn dropped(&self) -> u64 {
        (self.dropped)()
    }
}

impl Library {
    /// Records spans with one integer argument.
    fn spans(&self, count: u64) {
        for step in 0..count {
            // SAFETY: C strings.
            let span = unsafe { (self.begin)(SA_PROFILE_LEVEL_E2E, CATEGORY, NAME) };
            // SAFETY: a C string.
            unsafe { (self.arg_int)(span, c"step".as_ptr(), step.cast_signed()) };
            (self.end)(span);
        }
    }

    /// Records spans with an integer, a short string and a fractional number.
    fn spans_with_args(&self, count: u64) {
        let begin = self.begin_args;
        for step in 0..count {
            let args = three_args(step);
            let (first, number) = (args.as_ptr(), args.len());
            // SAFETY: C strings, and an array of args with C strings.
            let span = unsafe { begin(SA_PROFILE_LEVEL_E2E, CATEGORY, NAME, first, number) };
            (self.end)(span);
        }
    }

    /// Records instants with one integer argument.
    fn instants(&self, count: u64) {
        for step in 0..count {
            let args = three_args(step);
            // SAFETY: C strings, and an array with at least one arg.
            unsafe { (self.instant)(SA_PROFILE_LEVEL_E2E, CATEGORY, NAME, args.as_ptr(), 1) };
        }
    }
}

/// Returns a function of the library. `F` is the function's type in the crate from which the library was built.
fn find<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, String> {
    // SAFETY: a handle of dlopen and a C string.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if symbol.is_null() || size_of::<F>() != size_of::<*mut c_void>() {
        return Err(format!("no {name:?}"));
    }
    // SAFETY: a function pointer of this size and, as the caller guarantees, of this type.
    Ok(unsafe { std::mem::transmute_copy(&symbol) })
}

fn three_args(step: u64) -> [Arg; 3] {
    let arg = |key: &'static CStr, value, kind| Arg {
        key: key.as_ptr(),
        value,
        length: 0,
        kind,
    };
    let integer = step.cast_signed();
    let string = c"decode".as_ptr();
    [
        arg(c"step", ArgValue { integer }, SA_PROFILE_ARG_INT),
        arg(c"phase", ArgValue { string }, SA_PROFILE_ARG_STRING),
        arg(c"share", ArgValue { number: 0.25 }, SA_PROFILE_ARG_DOUBLE),
    ]
}
