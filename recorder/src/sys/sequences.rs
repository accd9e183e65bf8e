//! Restartable sequences: predicts whether they would make a new thread end the process.
//!
//! Since version 2.35, glibc registers them for each thread if it could for the first one, and ends
//! the process if a later registration fails. That happens if a filter has refused the system call
//! since then. If the kernel or the sandbox never allowed it, or `GLIBC_TUNABLES` disabled it, all
//! threads start without them.

use std::io;

/// Returns true if starting a new thread would end the process: glibc registers restartable
/// sequences for each thread, but a filter now refuses that system call. Without a filter, the
/// kernel answers a call without an area with `EINVAL`.
pub(super) fn would_end_the_process() -> bool {
    if !are_registered() {
        return false;
    }
    // SAFETY: without an area the call registers nothing and leaves an existing registration in
    // place.
    let result = unsafe { libc::syscall(libc::SYS_rseq, std::ptr::null::<u8>(), 0, 0, 0) };
    let error = io::Error::last_os_error().raw_os_error();
    result < 0 && !matches!(error, Some(libc::EINVAL | libc::EBUSY))
}

/// Returns true if glibc registers restartable sequences. The dynamic linker's variable decides,
/// because RHEL 9 has them in an older glibc. Without that variable, the version decides.
#[cfg(target_env = "gnu")]
fn are_registered() -> bool {
    registered_size().map_or_else(is_glibc_2_35_or_later, |size| size != 0)
}

#[cfg(not(target_env = "gnu"))]
fn are_registered() -> bool {
    false
}

#[cfg(target_env = "gnu")]
fn is_glibc_2_35_or_later() -> bool {
    // SAFETY: takes no arguments and no lock.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a constant C string.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    version.to_str().is_ok_and(is_2_35_or_later)
}

#[cfg(target_env = "gnu")]
fn is_2_35_or_later(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next()) >= (2, 35)
}

/// Reads `__rseq_size` from the dynamic linker's image, where glibc stores whether it has
/// registered the first thread.
///
/// Searches the image's own hash table. `dlsym` would take the lock held by a `dlopen` of the host,
/// which may be waiting for the calling thread. A reference that is bound when this library is
/// loaded would make every program require glibc 2.35.
///
/// Returns the size that glibc has registered, or 0 if it has registered nothing. Returns `None` if
/// the program was started without a dynamic linker, or if the linker does not have this name or
/// table.
#[cfg(target_env = "gnu")]
fn registered_size() -> Option<u32> {
    use super::image::Image;

    // SAFETY: takes a number and no lock.
    let address = unsafe { libc::getauxval(libc::AT_BASE) };
    let base = usize::try_from(address).ok().filter(|base| *base != 0)?;
    // SAFETY: the kernel mapped the linker there, and it stays mapped as long as the process lives.
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
        let old = ["2.17", "2.34", "2.4", "", "x"].map(is_2_35_or_later);
        let new = ["2.35", "2.36.1", "2.100", "3.0"].map(is_2_35_or_later);
        assert_eq!((old, new), ([false; 5], [true; 4]));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_linkers_table_agrees_with_dlsym() {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
        // SAFETY: null, or the C library's constant of this type.
        let size = unsafe { found.cast::<u32>().as_ref() };
        assert_eq!(registered_size(), size.copied());
    }
}
