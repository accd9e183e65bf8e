//! Restartable sequences: whether a thread that begins now would end the process for them.
//!
//! From 2.35 on glibc registers them for each thread, if it could for the first one, and ends the process where that fails later. A filter may refuse the
//! call since. Where the kernel or the sandbox never had it, or the program was told to go without (`GLIBC_TUNABLES`), all threads begin without.

use std::io;

/// Whether a new thread would end the process: glibc registers restartable sequences for it, and a filter refuses that call by now. The kernel
/// answers a call that asks for nothing with `EINVAL` else.
pub(super) fn would_end_the_process() -> bool {
    if !are_registered() {
        return false;
    }
    // SAFETY: without an area nothing is registered, and what is stays.
    let asked = unsafe { libc::syscall(libc::SYS_rseq, std::ptr::null::<u8>(), 0, 0, 0) };
    let error = io::Error::last_os_error().raw_os_error();
    asked < 0 && !matches!(error, Some(libc::EINVAL | libc::EBUSY))
}

/// As the linker says it, also that of an older glibc which has them all the same (RHEL 9); else as the version lets expect.
#[cfg(target_env = "gnu")]
fn are_registered() -> bool {
    size_of_sequences().map_or_else(is_of_2_35, |size| size != 0)
}

#[cfg(not(target_env = "gnu"))]
fn are_registered() -> bool {
    false
}

#[cfg(target_env = "gnu")]
fn is_of_2_35() -> bool {
    // SAFETY: takes nothing, and no lock.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a constant C string.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    version.to_str().is_ok_and(is_from_2_35_on)
}

#[cfg(target_env = "gnu")]
fn is_from_2_35_on(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next()) >= (2, 35)
}

/// Reads `__rseq_size` from the dynamic linker's image, in which glibc says whether it has registered the first thread.
///
/// The image's own hash table is searched. `dlsym` takes the lock that a `dlopen` of the host's holds, which may wait for the calling
/// thread. A reference that is bound when this library is loaded would make every program need glibc 2.35.
///
/// Returns the size of what glibc has registered: 0 for nothing. `None` where the program was started without a linker, or that has no such name or table.
#[cfg(target_env = "gnu")]
fn size_of_sequences() -> Option<u32> {
    use super::image::Image;

    // SAFETY: takes a number, and no lock.
    let base = unsafe { libc::getauxval(libc::AT_BASE) };
    let base = usize::try_from(base).ok().filter(|base| *base != 0)?;
    // SAFETY: the kernel mapped the linker there, and it stays as long as the process lives.
    let image = unsafe { Image::at(base) };
    let symbol = image.symbol(c"__rseq_size")?;
    Some(image.read(usize::try_from(symbol.st_value).ok()?))
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_registers_sequences_from_2_35_on() {
        let old = ["2.17", "2.34", "2.4", "", "x"].map(is_from_2_35_on);
        let new = ["2.35", "2.36.1", "2.100", "3.0"].map(is_from_2_35_on);
        assert_eq!((old, new), ([false; 5], [true; 4]));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_linkers_table_says_what_dlsym_finds() {
        // SAFETY: a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
        // SAFETY: null, or the C library's constant of this type.
        let size = unsafe { found.cast::<u32>().as_ref() };
        assert_eq!(size_of_sequences(), size.copied());
    }
}
