//! The objects loaded into the process: which one is ours, which defines a name, how many there have been.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{defined_in, of_loaded};

/// In this library, whatever its exported names were bound to.
static HERE: u8 = 0;

/// Whether an address lies in this library. Addresses of the wrappers themselves would not tell: they are bound to whoever comes first.
pub(crate) fn is_ours(address: NonNull<c_void>) -> bool {
    let ours = object_of(here()).map(|info| info.dli_fbase);
    ours.is_some() && ours == object_of(address.as_ptr()).map(|info| info.dli_fbase)
}

fn here() -> *mut c_void {
    (&raw const HERE).cast_mut().cast()
}

fn object_of(address: *mut c_void) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; `info` is valid to fill.
    let known = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: all-zero is a valid `Dl_info`, and dladdr filled it otherwise.
    let info = unsafe { info.assume_init() };
    (known != 0 && !info.dli_fbase.is_null()).then_some(info)
}

/// Keeps the object that holds a function loaded for good: the host may close it, and its address is remembered here.
pub(super) fn keep_loaded(function: NonNull<c_void>) {
    let Some(info) = object_of(function.as_ptr()).filter(|info| !info.dli_fname.is_null()) else {
        return;
    };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: a name that dladdr gave lives as long as its object, which is loaded now.
    unsafe { libc::dlopen(info.dli_fname, flags) };
}

/// The first definition of a name in a library that was loaded after this one: for one that comes from a library of another soname, loaded locally. One that lies before ours is an
/// interposer, which would call us again.
pub(super) fn find_anywhere(name: &CStr) -> Option<NonNull<c_void>> {
    let behind = behind_ours()?;
    // A library's dependencies are searched with it, and they may lie before ours.
    let is_behind = |found: &NonNull<c_void>| {
        path_of(found.as_ptr()).is_some_and(|path| behind.iter().any(|one| one.as_c_str() == path))
    };
    behind
        .iter()
        .filter_map(|path| defined_in(path, libc::RTLD_NOLOAD, name))
        .find(is_behind)
}

/// Whether one of those defines it.
pub(super) fn is_anywhere(name: &CStr) -> bool {
    let mut behind = behind_ours().into_iter().flatten();
    behind.any(|path| of_loaded(&path, name).is_some_and(|found| !is_of_a_copy(found)))
}

/// Whether a function is that of another copy of this library.
pub(super) fn is_of_a_copy(function: NonNull<c_void>) -> bool {
    let paths = path_of(function.as_ptr()).zip(path_of(here()));
    paths.is_some_and(|(path, own)| file_name(path) == file_name(own))
}

/// The paths of the objects behind this library in the order in which names are searched; copies of ours are left out.
fn behind_ours() -> Option<Vec<CString>> {
    let own = path_of(here())?;
    let mut paths = loaded();
    // A program itself is not found by its path, and is the first of all.
    let at = paths.iter().position(|path| path.as_c_str() == own);
    paths.drain(..=at.unwrap_or(0).min(paths.len().saturating_sub(1)));
    paths.retain(|path| !path.is_empty() && file_name(path) != file_name(own));
    Some(paths)
}

/// The path of the object that an address lies in.
pub(crate) fn path_of<'a>(address: *mut c_void) -> Option<&'a CStr> {
    let path = object_of(address)?.dli_fname;
    // SAFETY: a name that dladdr gave lives as long as its object: this library, or one that was just opened.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// Whether no other copy of this library was loaded before: where two are preloaded, or a wheel brings one along, only the first one records.
pub(crate) fn is_first_copy() -> bool {
    const UNKNOWN: u8 = 0;
    const FIRST: u8 = 1;
    const LATER: u8 = 2;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    match ANSWER.load(Ordering::Relaxed) {
        UNKNOWN => {
            let first = look_for_copies();
            ANSWER.store(if first { FIRST } else { LATER }, Ordering::Relaxed);
            first
        }
        answer => answer == FIRST,
    }
}

fn look_for_copies() -> bool {
    let Some(own) = path_of(here()) else {
        return true;
    };
    let loaded = loaded();
    let mut copies = loaded
        .iter()
        .filter(|path| file_name(path) == file_name(own));
    copies.next().is_none_or(|first| first.as_c_str() == own)
}

/// The part of a path behind its last slash.
fn file_name(path: &CStr) -> &[u8] {
    let mut parts = path.to_bytes().rsplit(|byte| *byte == b'/');
    parts.next().unwrap_or_default()
}

/// The paths of all loaded objects, in the order in which they were loaded.
///
/// Nothing is allocated during the walk, in which the linker holds a lock: an allocator may look at the loaded objects under its own.
fn loaded() -> Vec<CString> {
    let mut paths = Paths::default();
    // Twice as much as there was: others may load more meanwhile.
    while !paths.walk() {
        paths.text = Vec::with_capacity(2 * paths.bytes);
    }
    let whole = paths.text.split_inclusive(|byte| *byte == 0);
    whole
        .filter_map(|path| CString::from_vec_with_nul(path.to_owned()).ok())
        .collect()
}

/// Paths as they come, each with its NUL.
#[derive(Default)]
struct Paths {
    text: Vec<u8>,
    /// The bytes of all, also of those that had no room.
    bytes: usize,
}

impl Paths {
    /// Walks over all objects; whether there was room for all.
    fn walk(&mut self) -> bool {
        self.bytes = 0;
        self.text.clear();
        // SAFETY: the callback takes this record and keeps nothing.
        unsafe { libc::dl_iterate_phdr(Some(add_path), std::ptr::from_mut(self).cast()) };
        self.bytes == self.text.len()
    }
}

unsafe extern "C" fn add_path(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    paths: *mut c_void,
) -> c_int {
    // SAFETY: the linker hands in a valid record.
    let name = unsafe { (*info).dlpi_name };
    if !name.is_null() {
        // SAFETY: the name of a loaded object; the linker lets none go during the walk.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
        // SAFETY: the record of `Paths::walk`, which nobody else uses meanwhile.
        let paths = unsafe { &mut *paths.cast::<Paths>() };
        paths.bytes += name.len();
        if paths.text.capacity() - paths.text.len() >= name.len() {
            paths.text.extend_from_slice(name);
        }
    }
    0
}

/// How many objects have been loaded since the process began; 0 where the linker does not tell.
pub(super) fn loaded_so_far() -> u64 {
    unsafe extern "C" fn read(
        info: *mut libc::dl_phdr_info,
        size: usize,
        count: *mut c_void,
    ) -> c_int {
        if size >= std::mem::size_of::<libc::dl_phdr_info>() {
            // SAFETY: the record is at least as large as the type.
            let adds = unsafe { (*info).dlpi_adds };
            // SAFETY: the number below.
            unsafe { *count.cast::<u64>() = adds };
        }
        1 // every record has the same number
    }
    let mut count = 0u64;
    // SAFETY: the callback takes this number and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut count).cast()) };
    count
}
