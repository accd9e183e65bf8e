//! Sandboxes that refuse system calls: whichever call it is and whenever the refusal begins, the host behaves as without a recorder.

use crate::HOST;
use e2e::host_support::{Host, full, scratch, works};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number that belongs to no system call.
const NONE: libc::c_long = 100_000;

/// Lists system calls with their names.
macro_rules! calls {
    ($($(#[$only:meta])? $number:ident)*) => {
        &[$($(#[$only])? (stringify!($number), libc::$number)),*]
    };
}

/// Calls that no program survives without: glibc takes a failed `brk` for success, so that allocations return memory that does not exist, and a thread
/// that cannot exit retries forever.
const NEVER_REFUSED: [&str; 2] = ["brk", "exit"];

/// All other calls that the recorder makes, directly or through the C library.
const CALLS: &[(&str, libc::c_long)] = calls! {
    SYS_clock_nanosleep SYS_clone SYS_clone3 SYS_close SYS_fallocate SYS_fchmod SYS_fcntl
    SYS_flock SYS_fstat SYS_fstatfs SYS_ftruncate SYS_futex SYS_getcwd SYS_getdents64
    SYS_geteuid SYS_getpid SYS_getrandom SYS_gettid SYS_ioctl SYS_linkat SYS_lseek SYS_madvise
    SYS_membarrier SYS_memfd_create SYS_mkdirat SYS_mmap SYS_mprotect SYS_munmap SYS_newfstatat
    SYS_openat SYS_ppoll SYS_prctl SYS_pread64 SYS_prlimit64 SYS_pwrite64 SYS_read
    SYS_readlinkat SYS_renameat2 SYS_rseq SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask
    SYS_rt_sigtimedwait SYS_sched_getaffinity SYS_sched_yield SYS_set_robust_list
    SYS_sigaltstack SYS_statfs SYS_statx SYS_tgkill SYS_uname SYS_unlinkat SYS_write SYS_writev
    #[cfg(target_arch = "x86_64")] SYS_mkdir
    #[cfg(target_arch = "x86_64")] SYS_poll
    #[cfg(target_arch = "x86_64")] SYS_readlink
};

/// Errors that sandboxes return: not permitted, and no such call.
const ERRORS: [libc::c_int; 2] = [libc::EPERM, libc::ENOSYS];
const MOMENTS: [&str; 3] = ["before", "between", "exit"];

/// Prepares a host that forbids a call from some moment on.
fn host(when: &str, call: libc::c_long, error: libc::c_int) -> Host {
    let options: &[&str] = if when == "before" { &["--lazy"] } else { &[] };
    let (call, error) = (call.to_string(), error.to_string());
    Host::new(HOST)
        .arguments(options)
        .arguments(&["refused", when, &call, &error])
}

#[test]
fn issue_19_a_refused_system_call_never_reaches_the_host() {
    let combinations: Vec<_> = (MOMENTS.iter())
        .flat_map(|when| CALLS.iter().map(move |call| (when, call)))
        .flat_map(|(when, call)| ERRORS.map(|error| (*when, *call, error)))
        .step_by(if full() { 1 } else { 3 })
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let next_combination = || combinations.get(next.fetch_add(1, Ordering::Relaxed));
        while let Some((when, (name, call), error)) = next_combination() {
            let dir = scratch();
            println!("{name} refused with {error} {when}");
            let host = host(when, *call, *error).recorded_in(dir.path());
            let outcome = host.run().unharmed();
            assert_eq!(outcome.stdout, format!("refused {when} {call} {error}\n"));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
}

/// The C library ends the process if a new thread cannot register restartable sequences because a filter refuses them.
#[test]
fn no_recorder_thread_is_starting_when_a_filter_is_set_right_after_the_first_event() {
    for error in ERRORS {
        let dir = scratch();
        let host = host("thread", libc::SYS_rseq, error);
        let outcome = host.recorded_in(dir.path()).run().quiet();
        let said = format!("refused thread {} {error}\n", libc::SYS_rseq);
        assert_eq!(outcome.stdout, said);
    }
}

/// If restartable sequences were never available, as in qemu, threads start without them. A filter that refuses them is then no reason to avoid a thread.
#[test]
fn a_process_without_restartable_sequences_has_a_recorder_thread() {
    let dir = scratch();
    let mut host = Host::new(HOST)
        .arguments(&["--lazy", "script"])
        .recorded_in(dir.path())
        .variable("SA_PROFILE_THREADS", "1")
        .variable("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .start();
    host.ask("no-sequences, init, spans work 10");
    assert_eq!(host.threads(), 2);
    let _outcome = host.end().quiet();
}

/// Returns the names of the calls that a program and its threads make.
fn traced(host: Host, log: &std::path::Path) -> BTreeSet<String> {
    let _outcome = host.run().quiet();
    let log = fs::read_to_string(log).expect("strace wrote it");
    let call = |line: &str| {
        let (_, call) = line.split_once(' ')?;
        let (name, _) = call.trim_start().split_once('(')?;
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        name.chars().all(is_part).then(|| name.to_owned())
    };
    log.lines().filter_map(call).collect()
}

#[test]
fn issue_19_every_system_call_of_the_recorder_is_in_the_list() {
    if !works(&["strace", "-f", "-o", "/dev/null", "true"]) {
        return;
    }
    let dir = scratch();
    let log = dir.path().join("log");
    let path = log.display().to_string();
    let none = NONE.to_string();
    let below = || {
        Host::below(&["strace", "-f", "-o", &path], HOST)
            .arguments(&["--lazy", "refused", "between", &none, "1"])
    };
    let plain = traced(below(), &log);
    let recorded = traced(below().recorded_in(&dir.path().join("run")), &log);
    let names = CALLS
        .iter()
        .map(|(name, _)| name.trim_start_matches("SYS_"));
    let listed: BTreeSet<&str> = names.chain(NEVER_REFUSED).collect();
    let ours = recorded.difference(&plain).map(String::as_str);
    let unlisted: Vec<_> = ours.filter(|call| !listed.contains(call)).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    let is_traced = recorded.contains("writev") && recorded.contains("membarrier");
    assert!(is_traced, "{recorded:?}");
}
