//! The real function behind a wrapper: found when it is first called, by whoever has loaded it by then.
//!
//! The search begins with `RTLD_NEXT`, so that another interposer behind us stays in the chain. It finds nothing where the vendor's library is not in
//! the global scope, as under Python, which loads its extensions locally. Then the library is asked by its soname, and after that any loaded library
//! that defines the name. At last the library is loaded.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use sa_recorder::host::Uncancelled;

use crate::thread::Errno;

mod behind;
mod objects;

pub(crate) use behind::{BEHIND, Dlsym, real_dlsym};
pub(crate) use objects::{is_first_copy, is_ours, path_of};

/// A library of the vendor's.
#[derive(Debug)]
struct Library {
    soname: &'static CStr,
    /// It was asked for and is not to be had: its file will not appear later, though somebody may load it from elsewhere.
    unavailable: AtomicBool,
}

impl Library {
    const fn new(soname: &'static CStr) -> Library {
        Library {
            soname,
            unavailable: AtomicBool::new(false),
        }
    }
}

static ACL_RT: Library = Library::new(c"libacl_rt.so");
static ASCENDCL: Library = Library::new(c"libascendcl.so");
static OP_COMPILER: Library = Library::new(c"libacl_op_compiler.so");
static RUNTIME: Library = Library::new(c"libruntime.so");
static HCCL_LIBRARY: Library = Library::new(c"libhccl.so");
static MS_TOOLS: Library = Library::new(c"libms_tools_ext.so");
static MSPROFILER: Library = Library::new(c"libmsprofiler.so");

/// Functions that come from the same libraries.
#[derive(Debug)]
pub(crate) struct Family {
    libraries: &'static [&'static Library],
    /// What a function of it returns where the real one does not exist: "not supported" in its own numbering.
    pub(crate) missing: i32,
}

/// Without the real function a wrapper does all that it is asked for.
const NOT_NEEDED: i32 = 0;

/// ACL runtime.
pub(crate) static ACL: Family = Family {
    libraries: &[&ACL_RT, &ASCENDCL],
    missing: 200_001,
};
/// Offline models and single operators.
pub(crate) static OPERATOR: Family = Family {
    libraries: &[&ASCENDCL, &OP_COMPILER],
    missing: 200_001,
};
/// The runtime below ACL.
pub(crate) static RT: Family = Family {
    libraries: &[&RUNTIME],
    missing: 207_000,
};
/// Collectives.
pub(crate) static HCCL: Family = Family {
    libraries: &[&HCCL_LIBRARY],
    missing: 5,
};
/// Annotations; they need no real function.
pub(crate) static MSTX: Family = Family {
    libraries: &[&MS_TOOLS],
    missing: NOT_NEEDED,
};
/// The vendor's profiler.
pub(crate) static PROFILER: Family = Family {
    libraries: &[&MSPROFILER, &ASCENDCL],
    missing: 200_001,
};

/// A function that is looked for when it is first needed.
#[derive(Debug)]
pub(crate) struct Symbol {
    name: &'static CStr,
    family: &'static Family,
    real: AtomicPtr<c_void>,
    /// How many libraries had been loaded, plus one, when it was not there: it is looked for again only after another one was.
    missing_at: AtomicU64,
    /// The same of when a program asked for it and no library that was loaded had it.
    nowhere_at: AtomicU64,
}

impl Symbol {
    /// The function `name`, which ends with a NUL.
    pub(crate) const fn new(name: &'static str, family: &'static Family) -> Symbol {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
            panic!("a name ends with a null byte");
        };
        Symbol {
            name,
            family,
            real: AtomicPtr::new(std::ptr::null_mut()),
            missing_at: AtomicU64::new(0),
            nowhere_at: AtomicU64::new(0),
        }
    }

    /// Whether this is its name.
    pub(crate) fn is_called(&self, name: &CStr) -> bool {
        self.name == name
    }

    /// Whether the wrapper calls the function that somebody found behind a handle. To ask loads nothing, and binds the wrapper to nothing but the vendor's.
    pub(crate) fn is_behind(&self, found: NonNull<c_void>) -> bool {
        if let Some(real) = NonNull::new(self.real.load(Ordering::Acquire)) {
            return real == found;
        }
        let name = self.name;
        // Another interposer behind us is the one that the wrapper calls.
        let other = symbol(libc::RTLD_NEXT, name).filter(|next| *next != found);
        let mut libraries = self.family.libraries.iter();
        let is_vendors = other.is_none()
            && libraries.any(|library| of_loaded(library.soname, name) == Some(found));
        clear_dl_error();
        if is_vendors {
            objects::keep_loaded(found);
            self.real.store(found.as_ptr(), Ordering::Release);
        }
        is_vendors
    }

    /// Whether the wrapper needs a function that none of the loaded libraries has. To ask loads nothing, keeps nothing loaded, and binds the wrapper to nothing.
    pub(crate) fn is_nowhere(&self) -> bool {
        let is_known = !self.real.load(Ordering::Acquire).is_null();
        if is_known || self.family.missing == NOT_NEEDED {
            return false;
        }
        let loaded = objects::loaded_so_far() + 1;
        if self.nowhere_at.load(Ordering::Relaxed) == loaded {
            return true;
        }
        let is_nowhere = !is_loaded(self.name, self.family);
        clear_dl_error();
        if is_nowhere {
            self.nowhere_at.store(loaded, Ordering::Relaxed);
        }
        is_nowhere
    }

    /// Its address, if some library has it.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<NonNull<c_void>> {
        match NonNull::new(self.real.load(Ordering::Acquire)) {
            Some(real) => Some(real),
            None => self.look(),
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&self) -> Option<NonNull<c_void>> {
        let _uncancelled = Uncancelled::keep(); // the linker is not made to be unwound, nor are constructors
        let _errno = Errno::keep();
        let loaded = objects::loaded_so_far() + 1;
        if self.missing_at.load(Ordering::Relaxed) == loaded {
            return None;
        }
        let found = find(self.name, self.family);
        clear_dl_error();
        match found {
            Some(real) => {
                objects::keep_loaded(real);
                self.real.store(real.as_ptr(), Ordering::Release);
            }
            None => self.missing_at.store(loaded, Ordering::Relaxed),
        }
        found
    }
}

fn find(name: &CStr, family: &Family) -> Option<NonNull<c_void>> {
    let loaded = || {
        let mut libraries = family.libraries.iter();
        libraries.find_map(|library| defined_in(library.soname, libc::RTLD_NOLOAD, name))
    };
    let loaded_now = || {
        let libraries = family.libraries.iter();
        libraries
            .filter(|library| !library.unavailable.load(Ordering::Relaxed))
            .find_map(|library| load(library, name))
    };
    symbol(libc::RTLD_NEXT, name)
        .or_else(loaded)
        .or_else(|| objects::find_anywhere(name))
        .or_else(loaded_now)
}

/// Whether `find` would find it in a library that is loaded.
fn is_loaded(name: &CStr, family: &Family) -> bool {
    symbol(libc::RTLD_NEXT, name).is_some_and(|found| !objects::is_of_a_copy(found))
        || family
            .libraries
            .iter()
            .any(|library| of_loaded(library.soname, name).is_some())
        || objects::is_anywhere(name)
}

/// Loads a library that nobody has loaded, as the host would have when it came to call it. It stays loaded also where it lacks this function, since the host may call its others.
fn load(library: &Library, name: &CStr) -> Option<NonNull<c_void>> {
    match open(library.soname, 0) {
        Some(opened) => symbol(opened.as_ptr(), name),
        None => {
            library.unavailable.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// Opens a library, or finds it among those that are loaded.
fn open(library: &CStr, more: c_int) -> Option<NonNull<c_void>> {
    // SAFETY: a C string. Without RTLD_NOLOAD this runs the library's constructors, as the host's own use of it would.
    NonNull::new(unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | more) })
}

/// A name's definition in a library (or one that it depends on), which then stays loaded.
fn defined_in(library: &CStr, more: c_int, name: &CStr) -> Option<NonNull<c_void>> {
    let library = open(library, more)?;
    let found = symbol(library.as_ptr(), name);
    if found.is_none() {
        // SAFETY: opened above, and nothing of it is used.
        unsafe { libc::dlclose(library.as_ptr()) };
    }
    found
}

/// What a library that is loaded has under a name. Nothing stays loaded for it.
fn of_loaded(library: &CStr, name: &CStr) -> Option<NonNull<c_void>> {
    let library = open(library, libc::RTLD_NOLOAD)?;
    let found = symbol(library.as_ptr(), name);
    // SAFETY: opened above, and nothing of it is used.
    unsafe { libc::dlclose(library.as_ptr()) };
    found
}

/// Whether a handle leads to the global scope, as the program's own does.
pub(crate) fn is_global(handle: *mut c_void) -> bool {
    if handle == libc::RTLD_DEFAULT {
        return true;
    }
    // SAFETY: null names the program, which is loaded.
    let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if !program.is_null() {
        // SAFETY: opened above, and nothing of it is used.
        unsafe { libc::dlclose(program) };
    }
    handle == program
}

/// A name's definition that is not in this library.
fn symbol(library: *mut c_void, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: an open library or RTLD_NEXT, and a C string.
    let found = unsafe { real_dlsym()(library, name.as_ptr()) };
    NonNull::new(found).filter(|found| !objects::is_ours(*found))
}

/// Asks a `dlsym` for a function of the runtime that is loaded, which stays open; `None` where none is.
pub(crate) fn in_runtime(name: &CStr, dlsym: Dlsym) -> Option<*mut c_void> {
    let mut libraries = ACL.libraries.iter();
    let library = libraries.find_map(|library| open(library.soname, libc::RTLD_NOLOAD));
    // SAFETY: an open library and a C string.
    let found = library.map(|library| unsafe { dlsym(library.as_ptr(), name.as_ptr()) });
    clear_dl_error();
    found
}

/// Takes back the message that a failed search left: the host did not ask for anything that failed.
fn clear_dl_error() {
    // SAFETY: reads and clears the thread's own message.
    unsafe { libc::dlerror() };
}
