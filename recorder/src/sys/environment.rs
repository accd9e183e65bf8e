//! The environment, as far as it may decide anything here.
//!
//! A program with raised privileges (set-user-id, set-group-id, file capabilities) has rights that its caller lacks, and an environment that its caller
//! chose. What is read there would let the caller say where such a program writes files, and with which mode. Every variable is therefore read here.

use std::ffi::OsString;

/// Whether this program has rights that its caller lacks, as the kernel said when it was executed.
pub fn is_privileged() -> bool {
    // SAFETY: reads a word that the kernel gave the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A variable of the environment; none in a program with raised privileges.
pub fn variable(name: &str) -> Option<OsString> {
    if is_privileged() {
        None
    } else {
        std::env::var_os(name)
    }
}
