//! Preloaded into a process, this library makes calls of it to the C library fail as `plan` says. It begins once the process has read from its stdin, so that neither the
//! dynamic linker nor the start of a program is concerned, and it leaves alone what is done to stdin, stdout and stderr.
//!
//! What the process asks of the kernel by itself is not seen: system calls made by an instruction of its own, those that the C library makes for itself, and the clock's reading where
//! a program takes it from the kernel's page.
#![expect(unsafe_code, reason = "it stands in the place of the C library")]

pub mod calls;
mod plan;
