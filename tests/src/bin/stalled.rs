//! A host whose file system hangs: this program's `writev` and `statx` are those that the recorder in it calls.
//!
//! `stalled hung` makes every write hang and then does everything that a host may do. During the hang, `stalled fast` records until its ring is full.
//! With `stalled "looks, fast"` each check of the control file hangs as well. `stalled recovers` continues after the hang, with one thread again.
//! `stalled late` and `stalled never` record a span during the hang that no ring has room for, and the write ends later or never. `stalled exit` ends
//! the process from a signal handler that interrupts a write. All end with exit code 7 and print nothing, except `stalled "exit, in memory"`: it ends
//! while a write hangs and events are only in memory. With `stalled "exit in a write, in memory"`, the recorder's own thread is already in that
//! write.
#![expect(unsafe_code, reason = "replaces a function of the C library")]

use sa_recorder::{Args, Level, Recorder, span};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Whether the file system has no room for a ring of one more thread.
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// What a write does: 0 writes, 1 hangs, 2 raises SIGTERM first. With 3 looks at the control file hang, and with 4 both do.
static WRITES: AtomicU32 = AtomicU32::new(WRITE);
const WRITE: u32 = 0;
const HANG: u32 = 1;
const RAISE: u32 = 2;
const HANG_IN_LOOKS: u32 = 3;
const HANG_IN_ALL: u32 = 4;

/// # Safety
/// As writev(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn writev(
    file: libc::c_int,
    parts: *const libc::iovec,
    count: libc::c_int,
) -> libc::ssize_t {
    while matches!(WRITES.load(Ordering::Relaxed), HANG | HANG_IN_ALL) {
        std::thread::sleep(Duration::from_millis(10));
    }
    if WRITES.load(Ordering::Relaxed) == RAISE {
        // SAFETY: getpid takes nothing.
        let own = unsafe { libc::getpid() };
        // SAFETY: kill has no preconditions; the recorder's own thread has the signal blocked, so the host's takes it.
        unsafe { libc::kill(own, libc::SIGTERM) };
    }
    // SAFETY: the caller's promise.
    let written = unsafe { libc::syscall(libc::SYS_writev, file, parts, count) };
    libc::ssize_t::try_from(written).unwrap_or(-1)
}

/// # Safety
/// As fallocate(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate(
    file: libc::c_int,
    mode: libc::c_int,
    from: libc::off_t,
    bytes: libc::off_t,
) -> libc::c_int {
    if IS_FULL.load(Ordering::Relaxed) {
        // SAFETY: it takes nothing.
        let error = unsafe { libc::__errno_location() };
        // SAFETY: it is this thread's.
        unsafe { *error = libc::ENOSPC };
        return -1;
    }
    // SAFETY: the caller's promise.
    let code = unsafe { libc::syscall(libc::SYS_fallocate, file, mode, from, bytes) };
    i32::try_from(code).unwrap_or(-1)
}

/// # Safety
/// As statx(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    folder: libc::c_int,
    path: *const libc::c_char,
    flags: libc::c_int,
    mask: libc::c_uint,
    found: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the caller's promise. The standard library asks for no path, too, to see what the kernel answers.
    let name = (!path.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes());
    let hangs = || matches!(WRITES.load(Ordering::Relaxed), HANG_IN_LOOKS | HANG_IN_ALL);
    while name.is_some_and(|name| name.ends_with(b"/control")) && hangs() {
        LOOKS.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: the caller's promise.
    let found = unsafe { libc::syscall(libc::SYS_statx, folder, path, flags, mask, found) };
    libc::c_int::try_from(found).unwrap_or(-1)
}

/// Whether somebody has looked at the control file meanwhile.
static LOOKS: AtomicBool = AtomicBool::new(false);

fn main() {
    Recorder::init();
    record(10);
    Recorder::get().flush();
    match std::env::args().nth(1).as_deref() {
        Some("hung") => hang(),
        Some("looks, fast") => look_and_fill_up(),
        Some("fast") => fill_up(),
        Some("recovers") => recover(),
        Some("late") => record_large_late(),
        Some("never") => record_large_never(),
        Some("exit") => exit_in_write(),
        Some("exit, in memory") => exit_with_events_in_memory(Duration::ZERO),
        Some("exit in a write, in memory") => exit_with_events_in_memory(UNTIL_IT_WRITES),
        _ => std::process::exit(64),
    }
    std::process::exit(7);
}

/// After this time the recorder's own thread is in a write.
const UNTIL_IT_WRITES: Duration = Duration::from_millis(600);
/// How many spans were recorded.
static RECORDED: AtomicU64 = AtomicU64::new(0);

fn record(count: u64) {
    for _ in 0..count {
        let index = RECORDED.fetch_add(1, Ordering::Relaxed);
        drop(span!("host", "work", label = "stalled", index = index));
    }
}

/// Everything that may want the file, while another thread's write never ends.
fn hang() {
    WRITES.store(HANG, Ordering::Relaxed);
    record(10);
    std::thread::sleep(UNTIL_IT_WRITES);
    let recorder = Recorder::get();
    recorder.flush();
    assert!(recorder.fragment().is_some(), "the path is known");
    let large = "x".repeat(16 << 10);
    let args = (0..20).fold(Args::new(), |args, number| {
        args.with(&format!("key{number}"), large.as_str())
    });
    recorder.instant(Level::E2e, "host", "large", &args);
}

/// Events of more than two seconds: with the first one in each the control file is looked at.
fn look() {
    WRITES.store(HANG_IN_LOOKS, Ordering::Relaxed);
    for _ in 0..50 {
        record(1);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(LOOKS.load(Ordering::Relaxed), "nobody looked");
}

/// Whoever looks at the control file hangs there, so that nobody is in a write when the ring fills up.
fn look_and_fill_up() {
    look();
    WRITES.store(HANG_IN_ALL, Ordering::Relaxed);
    record(10_000);
    record_large();
}

/// More than a ring holds, while no write ends.
fn fill_up() {
    WRITES.store(HANG, Ordering::Relaxed);
    record(10_000);
}

/// A hang ends, and so does the thread that was in it.
fn recover() {
    WRITES.store(HANG, Ordering::Relaxed);
    record(10);
    Recorder::get().flush();
    WRITES.store(WRITE, Ordering::Relaxed);
    while threads() > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    record(10);
}

/// Longer than a thread waits for a write.
const LATE: Duration = Duration::from_millis(1500);

/// The write ends when nobody waits for it any more.
fn record_large_late() {
    WRITES.store(HANG, Ordering::Relaxed);
    let other = std::thread::spawn(|| {
        std::thread::sleep(LATE);
        WRITES.store(WRITE, Ordering::Relaxed);
    });
    record_large();
    other.join().expect("it only sleeps");
    std::thread::sleep(LATE); // by then it is written
    record(10);
}

/// The recorder's own thread is in a write for ever; or, where there is none, the errand of this thread is.
fn record_large_never() {
    WRITES.store(HANG, Ordering::Relaxed);
    record(10);
    std::thread::sleep(UNTIL_IT_WRITES);
    record_large();
}

/// A span that no ring has room for.
fn record_large() {
    let index = RECORDED.fetch_add(1, Ordering::Relaxed);
    let text = "x".repeat(16 << 10);
    let mut span = span!("host", "work", label = "stalled", index = index);
    for number in 0..20 {
        span.arg(&format!("key{number}"), text.as_str());
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// A thread's events wait in memory, for the file had no room for its ring, and the last write never ends.
fn exit_with_events_in_memory(rest: Duration) {
    IS_FULL.store(true, Ordering::Relaxed);
    let (told, recorded) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        record(10);
        let _ = told.send(());
        loop {
            std::thread::park();
        }
    });
    recorded.recv().expect("the thread records");
    WRITES.store(HANG, Ordering::Relaxed);
    std::thread::sleep(rest);
}

extern "C" fn end(_signal: libc::c_int) {
    // SAFETY: not allowed in a handler, and done all the same.
    unsafe { libc::exit(7) };
}

/// Writes on this thread until one of its writes is interrupted.
fn exit_in_write() {
    // SAFETY: the handler is a function of the right type.
    unsafe { libc::signal(libc::SIGTERM, end as *const () as libc::sighandler_t) };
    WRITES.store(RAISE, Ordering::Relaxed);
    loop {
        record(100);
        Recorder::get().flush();
    }
}
