//! Functions of the C library that may fail. If they do not, they call the next function with the same name.

use crate::plan::{self, Fault, fault};
use libc::{
    c_int, c_long, c_uint, c_void, clockid_t, iovec, mode_t, nfds_t, off_t, pollfd, pthread_attr_t,
    pthread_key_t, pthread_t, rlimit, size_t, ssize_t, statfs, timespec,
};
use std::ffi::{CStr, c_char};

/// Runs before the program's main function.
// SAFETY: the section holds pointers to functions of this type, which the linker calls once.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    plan::read();
}

/// Sets this thread's `errno`.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is this thread's errno, which is writable.
    unsafe { *errno = error };
}

/// Returns true for any descriptor except stdin, stdout and stderr.
fn is_not_standard(fd: c_int) -> bool {
    fd > libc::STDERR_FILENO
}

/// Returns true if a path names a control file.
fn is_control(path: *const c_char) -> bool {
    // SAFETY: a path is a C string. The standard library also passes null, to test if the kernel supports the call.
    !path.is_null()
        && unsafe { CStr::from_ptr(path) }
            .to_bytes()
            .ends_with(b"/control")
}

/// Returns the error of a fault. For calls that cannot be short, the mildest error replaces `short`.
fn error_code(fault: Fault) -> c_int {
    match fault {
        Fault::Error(error) => error,
        Fault::Short => libc::EINTR,
    }
}

/// Defines functions that either fail or run normally. `by` computes the result of a failed call from the error. Each function has its name in plans, and optionally a
/// condition under which a call may fail.
macro_rules! failing {
    (by $answer:expr; $($name:ident($($arg:ident: $type:ty),*) -> $result:ty, $call:literal $(, if $may:expr)?;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which fails according to the plans.")]
        ///
        /// # Safety
        /// As for the C library's function.
        // SAFETY: has the C library's type, and is only exported to processes that preload it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            let may_fail = true $(&& $may)?;
            if may_fail && let Some(fault) = fault($call) {
                return $answer(error_code(fault));
            }
            let next = next!($name, fn($($type),*) -> $result);
            // SAFETY: the caller's arguments, unchanged.
            unsafe { next($($arg),*) }
        }
    )*};
}

failing! {
    by |error| {
        set_errno(error);
        -1 as _
    };
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, "open";
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, "open";
    openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, "open";
    openat64(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, "open";
    mkdir(path: *const c_char, mode: mode_t) -> c_int, "mkdir";
    mkdirat(at: c_int, path: *const c_char, mode: mode_t) -> c_int, "mkdir";
    unlinkat(at: c_int, path: *const c_char, flags: c_int) -> c_int, "unlinkat";
    fstatat(at: c_int, path: *const c_char, status: *mut libc::stat, flags: c_int) -> c_int, "stat";
    fstatat64(at: c_int, path: *const c_char, status: *mut libc::stat, flags: c_int) -> c_int, "stat";
    stat(path: *const c_char, status: *mut libc::stat) -> c_int, "stat";
    stat64(path: *const c_char, status: *mut libc::stat) -> c_int, "stat";
    statx(at: c_int, path: *const c_char, flags: c_int, mask: c_uint, status: *mut c_void) -> c_int, "control", if is_control(path);
    ftruncate(fd: c_int, bytes: off_t) -> c_int, "ftruncate";
    ftruncate64(fd: c_int, bytes: off_t) -> c_int, "ftruncate";
    fallocate(fd: c_int, mode: c_int, at: off_t, bytes: off_t) -> c_int, "fallocate";
    fallocate64(fd: c_int, mode: c_int, at: off_t, bytes: off_t) -> c_int, "fallocate";
    fstat(fd: c_int, status: *mut libc::stat) -> c_int, "fstat", if is_not_standard(fd);
    fstat64(fd: c_int, status: *mut libc::stat) -> c_int, "fstat", if is_not_standard(fd);
    fstatfs(fd: c_int, status: *mut statfs) -> c_int, "fstatfs";
    fstatfs64(fd: c_int, status: *mut statfs) -> c_int, "fstatfs";
    flock(fd: c_int, how: c_int) -> c_int, "flock";
    fchmod(fd: c_int, mode: mode_t) -> c_int, "fchmod";
    fcntl(fd: c_int, what: c_int, value: c_long) -> c_int, "fcntl", if is_not_standard(fd);
    fcntl64(fd: c_int, what: c_int, value: c_long) -> c_int, "fcntl", if is_not_standard(fd);
    mmap(at: *mut c_void, bytes: size_t, access: c_int, flags: c_int, fd: c_int, from: off_t) -> *mut c_void, "mmap";
    mmap64(at: *mut c_void, bytes: size_t, access: c_int, flags: c_int, fd: c_int, from: off_t) -> *mut c_void, "mmap";
    madvise(at: *mut c_void, bytes: size_t, advice: c_int) -> c_int, "madvise";
    memfd_create(name: *const c_char, flags: c_uint) -> c_int, "memfd_create";
    getrandom(to: *mut c_void, bytes: size_t, flags: c_uint) -> ssize_t, "getrandom";
    getrlimit(of: c_int, limit: *mut rlimit) -> c_int, "getrlimit";
    getrlimit64(of: c_int, limit: *mut rlimit) -> c_int, "getrlimit";
    clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int, "clock_gettime";
    readlink(path: *const c_char, to: *mut c_char, bytes: size_t) -> ssize_t, "readlink";
    poll(files: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int, "poll";
    prctl(what: c_int, a: c_long, b: c_long, c: c_long, d: c_long) -> c_int, "prctl";
    // Excludes gettid, which cannot fail, and the futex calls of the standard library.
    syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long, "syscall",
        if number == libc::SYS_renameat2 || number == libc::SYS_membarrier;
}

failing! {
    by std::convert::identity;
    pthread_create(thread: *mut pthread_t, attributes: *const pthread_attr_t, start: *mut c_void, with: *mut c_void) -> c_int, "pthread_create";
    pthread_key_create(key: *mut pthread_key_t, end: *mut c_void) -> c_int, "pthread_key_create";
}

/// Fails like `close` on Linux, which closes the descriptor even if it returns an error.
///
/// # Safety
/// As for the C library's function.
// SAFETY: has the C library's type, and is only exported to processes that preload it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let next = next!(close, fn(c_int) -> c_int);
    // SAFETY: the caller's argument, unchanged.
    let closed = unsafe { next(fd) };
    if is_not_standard(fd)
        && let Some(fault) = fault("close")
    {
        set_errno(error_code(fault));
        return -1;
    }
    closed
}

/// Returns the number of bytes that a call may transfer, or `None` if it fails.
fn allowed(call: &str, fd: c_int, bytes: size_t) -> Option<size_t> {
    match is_not_standard(fd).then(|| fault(call)).flatten() {
        Some(Fault::Error(error)) => {
            set_errno(error);
            None
        }
        Some(Fault::Short) => Some(bytes / 2),
        None => Some(bytes),
    }
}

/// Defines functions that may transfer only half of the requested bytes. The first `read` from stdin activates the plans.
macro_rules! partial {
    ($($name:ident($buffer:ty $(, $at:ident: $offset:ty)?), $call:literal;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which transfers fewer bytes according to the plans.")]
        ///
        /// # Safety
        /// As for the C library's function.
        // SAFETY: has the C library's type, and is only exported to processes that preload it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, buffer: $buffer, bytes: size_t $(, $at: $offset)?) -> ssize_t {
            let Some(bytes) = allowed($call, fd, bytes) else {
                return -1;
            };
            let next = next!($name, fn(c_int, $buffer, size_t $(, $offset)?) -> ssize_t);
            // SAFETY: the caller's arguments, or fewer bytes.
            let done = unsafe { next(fd, buffer, bytes $(, $at)?) };
            if $call == "read" && fd == libc::STDIN_FILENO {
                plan::arm();
            }
            done
        }
    )*};
}

partial! {
    read(*mut c_void), "read";
    pread(*mut c_void, at: off_t), "read";
    pread64(*mut c_void, at: off_t), "read";
    write(*const c_void), "write";
}

/// Replaces `writev`. A short call writes half of the bytes.
///
/// # Safety
/// As for the C library's function.
// SAFETY: has the C library's type, and is only exported to processes that preload it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller passes `count` parts.
    let requested =
        unsafe { std::slice::from_raw_parts(parts, usize::try_from(count).unwrap_or(0)) };
    let total = requested.iter().map(|part| part.iov_len).sum();
    let Some(mut left) = allowed("writev", fd, total) else {
        return -1;
    };
    let mut cut = requested.to_vec();
    for part in &mut cut {
        part.iov_len = part.iov_len.min(left);
        left -= part.iov_len;
    }
    let next = next!(writev, fn(c_int, *const iovec, c_int) -> ssize_t);
    // SAFETY: the caller's parts, some of them with fewer bytes.
    unsafe { next(fd, cut.as_ptr(), count) }
}
