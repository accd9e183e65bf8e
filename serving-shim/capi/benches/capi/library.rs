//! The shared library, its functions looked up by name.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;

use sa_profile::{Arg, ArgValue, SA_PROFILE_ARG_DOUBLE, SA_PROFILE_ARG_INT, SA_PROFILE_ARG_STRING};
use sa_profile::{Level, SA_PROFILE_LEVEL_E2E, Span};

type Begin = unsafe extern "C" fn(Level, *const c_char, *const c_char) -> Span;
type BeginArgs =
    unsafe extern "C" fn(Level, *const c_char, *const c_char, *const Arg, usize) -> Span;
type Instant = unsafe extern "C" fn(Level, *const c_char, *const c_char, *const Arg, usize);

/// The functions that are measured.
pub(crate) struct Library {
    begin: Begin,
    begin_args: BeginArgs,
    arg_int: unsafe extern "C" fn(Span, *const c_char, i64),
    end: extern "C" fn(Span),
    instant: Instant,
    is_enabled: extern "C" fn() -> bool,
    flush: extern "C" fn(),
    dropped: extern "C" fn() -> u64,
}

const CATEGORY: *const c_char = c"bench".as_ptr();
const NAME: *const c_char = c"decode".as_ptr();

impl Library {
    /// Loads the library that cargo built beside this program.
    pub(crate) fn load() -> Result<Library, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let path = program.with_file_name("libsa_profile.so");
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: a C string; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("{} cannot be loaded", path.display()));
        }
        let find = |name: &CStr| -> Result<*mut c_void, String> {
            // SAFETY: a handle of dlopen and a C string.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            let found = !symbol.is_null();
            found
                .then_some(symbol)
                .ok_or_else(|| format!("no {name:?}"))
        };
        // SAFETY, of each: the types are those of the functions in the crate that the library was built from.
        Ok(Library {
            // SAFETY: above.
            begin: unsafe { transmute::<*mut c_void, Begin>(find(c"sa_profile_span_begin")?) },
            // SAFETY: above.
            begin_args: unsafe {
                transmute::<*mut c_void, BeginArgs>(find(c"sa_profile_span_begin_args")?)
            },
            // SAFETY: above.
            arg_int: unsafe {
                transmute::<*mut c_void, unsafe extern "C" fn(Span, *const c_char, i64)>(find(
                    c"sa_profile_span_arg_int",
                )?)
            },
            // SAFETY: above.
            end: unsafe {
                transmute::<*mut c_void, extern "C" fn(Span)>(find(c"sa_profile_span_end")?)
            },
            // SAFETY: above.
            instant: unsafe { transmute::<*mut c_void, Instant>(find(c"sa_profile_instant")?) },
            // SAFETY: above.
            is_enabled: unsafe {
                transmute::<*mut c_void, extern "C" fn() -> bool>(find(c"sa_profile_is_enabled")?)
            },
            // SAFETY: above.
            flush: unsafe { transmute::<*mut c_void, extern "C" fn()>(find(c"sa_profile_flush")?) },
            // SAFETY: above.
            dropped: unsafe {
                transmute::<*mut c_void, extern "C" fn() -> u64>(find(c"sa_profile_dropped")?)
            },
        })
    }

    pub(crate) fn is_enabled(&self) -> bool {
        (self.is_enabled)()
    }

    pub(crate) fn flush(&self) {
        (self.flush)();
    }

    pub(crate) fn dropped(&self) -> u64 {
        (self.dropped)()
    }

    /// Records spans with one integer argument.
    pub(crate) fn spans(&self, count: u64) {
        for step in 0..count {
            // SAFETY: C strings.
            let span = unsafe { (self.begin)(SA_PROFILE_LEVEL_E2E, CATEGORY, NAME) };
            // SAFETY: a C string.
            unsafe { (self.arg_int)(span, c"step".as_ptr(), step.cast_signed()) };
            (self.end)(span);
        }
    }

    /// Records spans with an integer, a short string and a fraction.
    pub(crate) fn spans_with_args(&self, count: u64) {
        for step in 0..count {
            let args = three_args(step);
            // SAFETY: C strings, and an array of args with C strings.
            let span = unsafe {
                (self.begin_args)(
                    SA_PROFILE_LEVEL_E2E,
                    CATEGORY,
                    NAME,
                    args.as_ptr(),
                    args.len(),
                )
            };
            (self.end)(span);
        }
    }

    /// Records instants with one integer argument.
    pub(crate) fn instants(&self, count: u64) {
        for step in 0..count {
            let args = three_args(step);
            // SAFETY: C strings, and an array with at least one arg.
            unsafe { (self.instant)(SA_PROFILE_LEVEL_E2E, CATEGORY, NAME, args.as_ptr(), 1) };
        }
    }
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
