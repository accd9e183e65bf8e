//! A library that, preloaded into a process, makes the process's calls of the C library fail according to `plan`. It becomes active once the process has read from stdin, so that
//! the dynamic linker and the program's start are not affected. It ignores calls on stdin, stdout and stderr.
//!
//! It does not see system calls that bypass the C library's exported functions: direct system calls, calls inside the C library, and clock readings that
//! use the kernel's vDSO directly.
//!
//! It can also simulate another page size, see `pages`.
#![expect(unsafe_code, reason = "it replaces functions of the C library")]

/// Returns the next definition of a C library function, with the given type. For `mmap`, returns ours, which applies the simulated page size.
macro_rules! next {
    (mmap, $($type:tt)*) => { crate::pages::mmap };
    (mmap64, $($type:tt)*) => { crate::pages::mmap };
    ($name:ident, fn($($type:ty),*) -> $result:ty) => {{
        const NAME: &[u8] = concat!(stringify!($name), "\0").as_bytes();
        // SAFETY: the name is NUL-terminated.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr().cast()) };
        // SAFETY: the C library defines the symbol with this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn($($type),*) -> $result>(next) }
    }};
}

pub mod calls;
pub mod pages;
mod plan;
