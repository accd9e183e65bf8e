//! The objects that are loaded into the process: which one is ours, which one defines a name, and how many were loaded so far.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{defined_in, find_in_loaded};

/// A byte in this library. Its address is ours even if the exported names are bound to another library.
static HERE: u8 = 0;

/// Returns true if an address is in this library. Comparing it with the addresses of wrappers would not work, because the linker binds them to the first
/// definition.
pub(crate) fn is_ours(address: NonNull<c_void>) -> bool {
    let ours = object_of(here()).map(|info| info.dli_fbase);
    ours.is_some() && ours == object_of(address.as_ptr()).map(|info| info.dli_fbase)
}

fn here() -> *mut c_void {
    (&raw const HERE).cast_mut().cast()
}

fn object_of(address: *mut c_void) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address; `info` is valid to fill.
    let known = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: all-zero is a valid `Dl_info`, and dladdr filled it otherwise.
    let info = unsafe { info.assume_init() };
    (known != 0 && !info.dli_fbase.is_null()).then_some(info)
}

/// Keeps the library that contains a function loaded forever. The host may close it, but the function's address is stored here.
pub(super) fn keep_loaded(function: NonNull<c_void>) {
    let Some(info) = object_of(function.as_ptr()).filter(|info| !info.dli_fname.is_null()) else {
        return;
    };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: a name from dladdr is valid as long as its object, which is loaded now.
    unsafe { libc::dlopen(info.dli_fname, flags) };
}

/// Returns the first definition of `name` in any library that was loaded after this one. This finds functions of locally loaded libraries with another soname.
/// Earlier libraries are left out: they are interposers, which would call us again.
pub(super) fn find_anywhere(name: &CStr) -> Option<NonNull<c_void>> {
    let later = later_objects()?;
    // The linker also searches the dependencies of a library, and these may come before ours.
    let is_later = |found: &NonNull<c_void>| {
        path_of(found.as_ptr()).is_some_and(|path| later.iter().any(|one| one.as_c_str() == path))
    };
    later
        .iter()
        .filter_map(|path| defined_in(path, libc::RTLD_NOLOAD, name))
        .find(is_later)
}

/// Returns true if any library that was loaded after this one defines `name`.
pub(super) fn is_anywhere(name: &CStr) -> bool {
    let mut later = later_objects().into_iter().flatten();
    later.any(|path| find_in_loaded(&path, name).is_some_and(|found| !is_of_a_copy(found)))
}

/// Returns true if a function is in another copy of this preloaded library.
pub(super) fn is_of_a_copy(function: NonNull<c_void>) -> bool {
    let paths = path_of(function.as_ptr()).zip(path_of(here()));
    paths.is_some_and(|(path, own)| file_name(path) == file_name(own))
}

/// Returns the paths of the libraries after this one, in the order in which the linker searches them, without copies of this library.
fn later_objects() -> Option<Vec<CString>> {
    let own = path_of(here())?;
    let mut paths = loaded_paths();
    // The program itself is the first object and cannot be found by its path.
    let at = paths.iter().position(|path| path.as_c_str() == own);
    paths.drain(..=at.unwrap_or(0).min(paths.len().saturating_sub(1)));
    paths.retain(|path| !path.is_empty() && file_name(path) != file_name(own));
    Some(paths)
}

/// Returns the path of the program or library that contains an address.
pub(crate) fn path_of<'a>(address: *mut c_void) -> Option<&'a CStr> {
    let path = object_of(address)?.dli_fname;
    // SAFETY: a name from dladdr is valid as long as its object: this library, or one that was just opened.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// Returns true if no other copy of this library was loaded before this one. If two are preloaded, or a wheel contains one, only the first one records.
pub(crate) fn is_first_copy() -> bool {
    const UNKNOWN: u8 = 0;
    const FIRST: u8 = 1;
    const LATER: u8 = 2;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    match ANSWER.load(Ordering::Relaxed) {
        UNKNOWN => {
            let first = was_loaded_first();
            ANSWER.store(if first { FIRST } else { LATER }, Ordering::Relaxed);
            first
        }
        answer => answer == FIRST,
    }
}

fn was_loaded_first() -> bool {
    let Some(own) = path_of(here()) else {
        return true;
    };
    let loaded = loaded_paths();
    let mut copies = loaded
        .iter()
        .filter(|path| file_name(path) == file_name(own));
    copies.next().is_none_or(|first| first.as_c_str() == own)
}

/// Returns the part of a path after its last slash.
fn file_name(path: &CStr) -> &[u8] {
    let mut parts = path.to_bytes().rsplit(|byte| *byte == b'/');
    parts.next().unwrap_or_default()
}

/// Returns the paths of the program and all loaded libraries, in the order in which they were loaded.
///
/// Nothing is allocated during the walk, because the linker holds a lock: an allocator may walk over the loaded objects while it holds its own lock.
fn loaded_paths() -> Vec<CString> {
    let mut paths = Paths::default();
    // Reserve twice the size of the last walk, because other threads may load more meanwhile.
    while !paths.walk() {
        paths.text = Vec::with_capacity(2 * paths.bytes);
    }
    let whole = paths.text.split_inclusive(|byte| *byte == 0);
    whole
        .filter_map(|path| CString::from_vec_with_nul(path.to_owned()).ok())
        .collect()
}

/// Paths one after another, each with its NUL.
#[derive(Default)]
struct Paths {
    text: Vec<u8>,
    /// Length of all paths in bytes, including the ones that did not fit.
    bytes: usize,
}

impl Paths {
    /// Collects the paths of the program and all loaded libraries, which the linker lists. Returns true if there was room for all of them.
    fn walk(&mut self) -> bool {
        self.bytes = 0;
        self.text.clear();
        // SAFETY: the callback expects this record and keeps no reference.
        unsafe { libc::dl_iterate_phdr(Some(add_path), std::ptr::from_mut(self).cast()) };
        self.bytes == self.text.len()
    }
}

unsafe extern "C" fn add_path(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    paths: *mut c_void,
) -> c_int {
    // SAFETY: the linker passes a valid record.
    let name = unsafe { (*info).dlpi_name };
    if !name.is_null() {
        // SAFETY: the name of a loaded object; the linker unloads nothing during the walk.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
        // SAFETY: the record of `Paths::walk`, which nothing else uses meanwhile.
        let paths = unsafe { &mut *paths.cast::<Paths>() };
        paths.bytes += name.len();
        if paths.text.capacity() - paths.text.len() >= name.len() {
            paths.text.extend_from_slice(name);
        }
    }
    0
}

/// Returns the number of libraries that were loaded since the process began, or 0 if the linker does not report it.
pub(super) fn loaded_so_far() -> u64 {
    unsafe extern "C" fn read(
        info: *mut libc::dl_phdr_info,
        size: usize,
        count: *mut c_void,
    ) -> c_int {
        if size >= std::mem::size_of::<libc::dl_phdr_info>() {
            // SAFETY: the record is at least as large as the type.
            let adds = unsafe { (*info).dlpi_adds };
            // SAFETY: `count` points to the variable below.
            unsafe { *count.cast::<u64>() = adds };
        }
        1 // every record has the same number
    }
    let mut count = 0u64;
    // SAFETY: the callback expects this number and keeps no reference.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut count).cast()) };
    count
}
