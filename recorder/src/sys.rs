//! The operating system: descriptors, mappings, threads. Every raw call of the crate outside the
//! hot path is here.

pub(crate) mod cancel;
pub(crate) mod clock;
pub(crate) mod dir;
mod entries;
pub(crate) mod epoch;
pub(crate) mod fd;
pub(crate) mod fork_fds;
#[cfg(target_env = "gnu")]
mod image;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod read;
mod sequences;
pub(crate) mod shared;
pub(crate) mod sleep;
pub(crate) mod spin_lock;
mod stderr;
pub(crate) mod thread;
pub(crate) mod threads;
pub(crate) mod wait;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns true if this program has privileges that its caller lacks (set-user-id, set-group-id,
/// file capabilities), as the kernel reported when it executed the program.
pub fn is_privileged() -> bool {
    // SAFETY: reads a value that the kernel passed to the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the value of an environment variable, or `None` in a program with raised privileges.
/// There the unprivileged caller chose the environment, and could decide where the program writes
/// files and with which mode. Every variable is therefore read through this function.
pub fn variable(name: &str) -> Option<OsString> {
    if is_privileged() {
        None
    } else {
        std::env::var_os(name)
    }
}

/// True once this process has written its line to stderr.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Writes a warning of one line to stderr, unless stderr would block. Only the first call in the
/// life of a process does so, and later calls do nothing.
pub fn warn_once(text: &str) {
    if WARNED.swap(true, Ordering::Relaxed) {
        return;
    }
    stderr::write_line(format!("sa-profile: {}\n", sa_format::visible(text)).as_bytes());
}

/// Returns the size of a memory page of this machine in bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: sysconf reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(4096)
}

const PRIVATE_EXPEDITED: libc::c_int = 8;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 16;

/// Registers the process with the kernel for [`barrier_everywhere`]. Returns false if the kernel
/// refuses. With other threads running this takes the kernel 10 ms, so it is a step of its own that
/// an exit can skip.
pub(crate) fn prepare_barrier() -> bool {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 }
}

/// Makes every other thread of the process pass a full memory barrier, so that the plain stores
/// they made before become visible.
pub(crate) fn barrier_everywhere() {
    // SAFETY: as above.
    let pass = || unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0 };
    let done = pass() || prepare_barrier() && pass();
    if !done {
        sleep::sleep(std::time::Duration::from_millis(1)); // without the call: store buffers drain much sooner than this
    }
}

/// Returns a random 64-bit number, for nonces and run ids.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is valid for its length.
    let got =
        unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got == 8 {
        return u64::from_ne_bytes(bytes);
    }
    let seed = crate::sys::clock::now_ns() ^ (u64::from(std::process::id()) << 40);
    twox_hash::XxHash3_64::oneshot_with_seed(seed, &bytes)
}

/// Registers `at_exit` to run when the process exits normally.
pub fn run_at_exit(at_exit: extern "C" fn()) {
    // SAFETY: the function is static and never unwinds.
    unsafe { libc::atexit(at_exit) };
}

/// Registers `in_child` to run in the child of every `fork`.
pub fn run_after_fork(in_child: unsafe extern "C" fn()) {
    // SAFETY: the function is static and only makes async-signal-safe calls.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// Skips tests under an emulator of another machine, whose system calls behave differently.
#[cfg(test)]
pub(crate) mod emulator {
    /// Variable that is set if the tests run in an emulator.
    const EMULATED: &str = "SA_TEST_EMULATED";

    /// Returns true if the tests run in an emulator, which does not have `what`. Then it also
    /// prints that `test` is skipped.
    pub(crate) fn lacks(what: &str, test: &str) -> bool {
        let is_emulated = std::env::var_os(EMULATED).is_some();
        if is_emulated {
            eprintln!("SKIPPED {test}: the emulator has no {what}");
        }
        is_emulated
    }
}
