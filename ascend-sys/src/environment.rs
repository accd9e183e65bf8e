//! The variables that choose a library to load. In a program with raised privileges (set-user-id, set-group-id, file capabilities) they come
//! from the caller, who could run any code with its rights. None of them counts there, as for the dynamic linker itself.

use std::ffi::OsString;

/// A variable of the environment; none in a program with raised privileges.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    // SAFETY: reads a word that the kernel gave the process.
    let is_privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_privileged {
        None
    } else {
        std::env::var_os(name)
    }
}
