//! The library that contains this code. A host may `dlclose` it at any time. It must stay loaded
//! once the system has functions of it to call: at exit, at a fork, when a thread ends, and as
//! threads of ours.

/// Returns true if a `dlclose` of the host may unmap the recorder's code. Takes no lock.
#[cfg(all(target_env = "gnu", not(miri)))]
pub(crate) fn may_be_unloaded() -> bool {
    use super::image::Image;

    unsafe extern "C" {
        /// ELF header of the program or library that is being linked. Every linker defines this
        /// symbol in each of them.
        #[link_name = "__ehdr_start"]
        static HEADER: u8;
    }
    let header = (&raw const HEADER).expose_provenance();
    // SAFETY: this code is part of that image, so it is mapped while this function runs.
    let image = unsafe { Image::at(header) };
    // SAFETY: takes a number and no lock.
    let program_headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    usize::try_from(program_headers) != Ok(image.program_headers()) && !image.is_nodelete()
}

/// Returns false, because C libraries other than glibc never unmap a library in `dlclose`.
#[cfg(not(all(target_env = "gnu", not(miri))))]
pub(crate) fn may_be_unloaded() -> bool {
    false
}

/// Makes every later `dlclose` leave the recorder's code mapped. Takes the dynamic linker's lock,
/// and waits for a `dlopen` that holds it.
pub(crate) fn keep_loaded() {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = keep_loaded as fn() as *const libc::c_void;
    // SAFETY: any address may be passed, and `info` is valid to fill.
    let found = unsafe { libc::dladdr(here, info.as_mut_ptr()) };
    // SAFETY: all-zero is a valid `Dl_info`, and dladdr filled it otherwise.
    let info = unsafe { info.assume_init() };
    if found != 0 && !info.dli_fname.is_null() {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name lives as long as its library, which contains this code.
        unsafe { libc::dlopen(info.dli_fname, flags) };
    }
}
