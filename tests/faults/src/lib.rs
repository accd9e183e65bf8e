//! Preloaded into a process, this library makes calls of it to the C library fail as `plan` says. It begins once the process has read from its stdin, so that neither the
//! dynamic linker nor the start of a program is concerned, and it leaves alone what is done to stdin, stdout and stderr.
//!
//! What the process asks of the kernel by itself is not seen: system calls made by an instruction of its own, those that the C library makes for itself, and the clock's reading where
//! a program takes it from the kernel's page.
//!
//! It also gives the process the pages of another kernel, as `pages` says.
#![expect(unsafe_code, reason = "it stands in the place of the C library")]

/// The C library's function of a name, with the type that is asked for; for `mmap` ours, which knows other pages.
macro_rules! next {
    (mmap, $($type:tt)*) => { crate::pages::mmap };
    (mmap64, $($type:tt)*) => { crate::pages::mmap };
    ($name:ident, fn($($type:ty),*) -> $result:ty) => {{
        const NAME: &[u8] = concat!(stringify!($name), "\0").as_bytes();
        // SAFETY: the name is NUL-terminated.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr().cast()) };
        // SAFETY: the C library defines the symbol with exactly this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn($($type),*) -> $result>(next) }
    }};
}

pub mod calls;
pub mod pages;
mod plan;
