//! The real function that a wrapper calls. It is looked up at the wrapper's first call, when its library is usually loaded.
//!
//! The search begins with `RTLD_NEXT`, so that other interposers after us stay in the chain. That finds nothing if the vendor's library is not in the
//! global scope, for example under Python, which loads its extensions locally. Then the library is searched by its soname, then every loaded library,
//! and finally the library is loaded.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use sa_recorder::host::Uncancelled;

use crate::thread::Errno;

mod dlsym;
mod objects;

pub(crate) use dlsym::{Dlsym, REAL_DLSYM, real_dlsym};
pub(crate) use objects::{is_first_copy, is_ours, path_of};

/// A library of the vendor.
#[derive(Debug)]
struct Library {
    soname: &'static CStr,
    /// True after loading it failed. Its file will not appear later, although the program may load it from another folder.
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

/// A group of functions from the same libraries.
#[derive(Debug)]
pub(crate) struct Family {
    libraries: &'static [&'static Library],
    /// Return value if the real function does not exist: "not supported" in the library's own numbering.
    pub(crate) missing: i32,
}

/// Value of `missing` for wrappers that work without the real function.
const NOT_NEEDED: i32 = 0;

/// The ACL runtime.
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
/// Annotations, which work without the real functions.
pub(crate) static MSTX: Family = Family {
    libraries: &[&MS_TOOLS],
    missing: NOT_NEEDED,
};
/// The vendor's profiler.
pub(crate) static PROFILER: Family = Family {
    libraries: &[&MSPROFILER, &ASCENDCL],
    missing: 200_001,
};

/// A function that is looked up when it is first needed.
#[derive(Debug)]
pub(crate) struct Symbol {
    name: &'static CStr,
    family: &'static Family,
    real: AtomicPtr<c_void>,
    /// Number of libraries loaded so far, plus one, at the last failed search. The search is repeated only after another library was loaded.
    missing_at: AtomicU64,
    /// The same number at the last time when a program looked the function up and no loaded library had it.
    nowhere_at: AtomicU64,
}

impl Symbol {
    /// Creates the symbol for the vendor function `name`, which must end with a NUL. The function is looked up later.
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

    /// Returns true if `name` is the name of this vendor function.
    pub(crate) fn is_called(&self, name: &CStr) -> bool {
        self.name == name
    }

    /// Returns true if our wrapper calls the function `found`, which a program looked up by a library's handle. Loads nothing, and binds the wrapper only to a
    /// function of the vendor.
    pub(crate) fn calls(&self, found: NonNull<c_void>) -> bool {
        if let Some(real) = NonNull::new(self.real.load(Ordering::Acquire)) {
            return real == found;
        }
        let name = self.name;
        // If there is another interposer after us, the wrapper calls that one.
        let other = symbol(libc::RTLD_NEXT, name).filter(|next| *next != found);
        let mut libraries = self.family.libraries.iter();
        let is_vendors = other.is_none()
            && libraries.any(|library| find_in_loaded(library.soname, name) == Some(found));
        clear_dl_error();
        if is_vendors {
            objects::keep_loaded(found);
            self.real.store(found.as_ptr(), Ordering::Release);
        }
        is_vendors
    }

    /// Returns true if our wrapper needs a function that no loaded library has. Loads nothing, keeps nothing loaded, and does not bind the wrapper.
    pub(crate) fn is_nowhere(&self) -> bool {
        let is_bound = !self.real.load(Ordering::Acquire).is_null();
        if is_bound || self.family.missing == NOT_NEEDED {
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

    /// Returns the address of the vendor's function, which the first call looks up, or `None` if no library has it.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<NonNull<c_void>> {
        match NonNull::new(self.real.load(Ordering::Acquire)) {
            Some(real) => Some(real),
            None => self.bind(),
        }
    }

    #[cold]
    #[inline(never)]
    fn bind(&self) -> Option<NonNull<c_void>> {
        let _uncancelled = Uncancelled::begin(); // neither the linker nor constructors can be unwound
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
    let newly_loaded = || {
        let libraries = family.libraries.iter();
        libraries
            .filter(|library| !library.unavailable.load(Ordering::Relaxed))
            .find_map(|library| load(library, name))
    };
    symbol(libc::RTLD_NEXT, name)
        .or_else(loaded)
        .or_else(|| objects::find_anywhere(name))
        .or_else(newly_loaded)
}

/// Returns true if `find` would find the function `name` in a library that is already loaded.
fn is_loaded(name: &CStr, family: &Family) -> bool {
    symbol(libc::RTLD_NEXT, name).is_some_and(|found| !objects::is_of_a_copy(found))
        || family
            .libraries
            .iter()
            .any(|library| find_in_loaded(library.soname, name).is_some())
        || objects::is_anywhere(name)
}

/// Loads a vendor library that is not loaded yet, as the host's own call would have done, and looks up the function `name` in it. The library stays loaded
/// even if it lacks this function, because the host may call its other functions.
fn load(library: &Library, name: &CStr) -> Option<NonNull<c_void>> {
    match open(library.soname, 0) {
        Some(opened) => symbol(opened.as_ptr(), name),
        None => {
            library.unavailable.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// Opens a library by its name, and returns its handle. With `RTLD_NOLOAD` in `flags` it must already be loaded.
fn open(library: &CStr, flags: c_int) -> Option<NonNull<c_void>> {
    // SAFETY: a C string. Without RTLD_NOLOAD this runs the library's constructors, as the host's own use would.
    NonNull::new(unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | flags) })
}

/// Opens a library and returns the address that it or its dependencies define for `name`. If there is one, the library stays loaded.
fn defined_in(library: &CStr, flags: c_int, name: &CStr) -> Option<NonNull<c_void>> {
    let library = open(library, flags)?;
    let found = symbol(library.as_ptr(), name);
    if found.is_none() {
        // SAFETY: opened above, and nothing of it is used.
        unsafe { libc::dlclose(library.as_ptr()) };
    }
    found
}

/// Returns the address that a loaded library defines for `name`, without keeping that library loaded.
fn find_in_loaded(library: &CStr, name: &CStr) -> Option<NonNull<c_void>> {
    let library = open(library, libc::RTLD_NOLOAD)?;
    let found = symbol(library.as_ptr(), name);
    // SAFETY: opened above, and nothing of it is used.
    unsafe { libc::dlclose(library.as_ptr()) };
    found
}

/// Returns true if a search with this handle of `dlsym` covers the global scope, like a search with the handle of the program itself.
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

/// Looks up `name` with the real `dlsym` in an open library, or with `RTLD_NEXT`. Returns `None` if it is not found, or if it is found in this library.
fn symbol(library: *mut c_void, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: an open library or RTLD_NEXT, and a C string.
    let found = unsafe { real_dlsym()(library, name.as_ptr()) };
    NonNull::new(found).filter(|found| !objects::is_ours(*found))
}

/// Looks up a function of the loaded vendor runtime with the given `dlsym`. The runtime stays open. Returns `None` if no runtime is loaded.
pub(crate) fn find_in_runtime(name: &CStr, dlsym: Dlsym) -> Option<*mut c_void> {
    let mut libraries = ACL.libraries.iter();
    let library = libraries.find_map(|library| open(library.soname, libc::RTLD_NOLOAD));
    // SAFETY: an open library and a C string.
    let found = library.map(|library| unsafe { dlsym(library.as_ptr(), name.as_ptr()) });
    clear_dl_error();
    found
}

/// Clears the message of `dlerror` that a failed search of ours left, because no search of the host has failed.
fn clear_dl_error() {
    // SAFETY: reads and clears the thread's own message.
    unsafe { libc::dlerror() };
}
