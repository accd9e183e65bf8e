//! Sandboxes that refuse system calls: whichever one it is and whenever it begins, the host does what it does without a recorder.

use crate::HOST;
use e2e::host_support::{Host, assert_undisturbed, full, scratch, skip};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number that no call has.
const NONE: libc::c_long = 100_000;

/// Pairs of a call's name and number.
macro_rules! calls {
    ($($(#[$only:meta])? $name:ident $number:ident)*) => {
        &[$($(#[$only])? (stringify!($name), libc::$number)),*]
    };
}

/// What cannot be refused to anybody: glibc takes the refusal of `brk` for success, so that any allocation ends in memory that is not there, and a thread
/// that may not end tries for ever.
const NEVER_REFUSED: [&str; 2] = ["brk", "exit"];

/// Every other call that the recorder makes, itself or through the C library.
const CALLS: &[(&str, libc::c_long)] = calls! {
    clock_nanosleep SYS_clock_nanosleep
    clone SYS_clone
    clone3 SYS_clone3
    close SYS_close
    fallocate SYS_fallocate
    fchmod SYS_fchmod
    fcntl SYS_fcntl
    flock SYS_flock
    fstat SYS_fstat
    fstatfs SYS_fstatfs
    ftruncate SYS_ftruncate
    futex SYS_futex
    getcwd SYS_getcwd
    getdents64 SYS_getdents64
    geteuid SYS_geteuid
    getpid SYS_getpid
    getrandom SYS_getrandom
    gettid SYS_gettid
    ioctl SYS_ioctl
    linkat SYS_linkat
    lseek SYS_lseek
    madvise SYS_madvise
    membarrier SYS_membarrier
    memfd_create SYS_memfd_create
    mkdirat SYS_mkdirat
    #[cfg(target_arch = "x86_64")] mkdir SYS_mkdir
    mmap SYS_mmap
    mprotect SYS_mprotect
    munmap SYS_munmap
    newfstatat SYS_newfstatat
    openat SYS_openat
    #[cfg(target_arch = "x86_64")] poll SYS_poll
    ppoll SYS_ppoll
    prctl SYS_prctl
    pread64 SYS_pread64
    prlimit64 SYS_prlimit64
    pwrite64 SYS_pwrite64
    read SYS_read
    #[cfg(target_arch = "x86_64")] readlink SYS_readlink
    readlinkat SYS_readlinkat
    renameat2 SYS_renameat2
    rseq SYS_rseq
    rt_sigaction SYS_rt_sigaction
    rt_sigpending SYS_rt_sigpending
    rt_sigprocmask SYS_rt_sigprocmask
    rt_sigtimedwait SYS_rt_sigtimedwait
    sched_getaffinity SYS_sched_getaffinity
    sched_yield SYS_sched_yield
    set_robust_list SYS_set_robust_list
    sigaltstack SYS_sigaltstack
    statfs SYS_statfs
    statx SYS_statx
    tgkill SYS_tgkill
    uname SYS_uname
    unlinkat SYS_unlinkat
    write SYS_write
    writev SYS_writev
};

/// What a sandbox answers: that it may not, and that there is no such call.
const ERRORS: [libc::c_int; 2] = [libc::EPERM, libc::ENOSYS];
const MOMENTS: [&str; 3] = ["before", "between", "exit"];

/// Runs the host with a call forbidden from some moment on.
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
    let plain: Vec<_> = MOMENTS
        .map(|when| host(when, NONE, libc::EPERM).run().quiet())
        .into();
    let work = || {
        while let Some((when, (name, call), error)) =
            combinations.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let dir = scratch();
            let outcome = host(when, *call, *error).recorded_in(dir.path()).run();
            let at = MOMENTS.iter().position(|moment| moment == when);
            let plain = &plain[at.expect("one of them")];
            let same = outcome.status == plain.status && outcome.stdout == plain.stdout;
            assert!(same, "{name} refused with {error} {when}: {outcome:?}");
            assert_undisturbed(&outcome, plain);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
}

/// The C library ends a process in which it registers restartable sequences for a new thread, and a filter refuses that by then.
#[test]
fn a_filter_set_right_after_the_first_event_finds_no_thread_of_ours_that_begins() {
    for error in ERRORS {
        let dir = scratch();
        let host = host("thread", libc::SYS_rseq, error);
        let outcome = host.recorded_in(dir.path()).run().quiet();
        assert_eq!(outcome.stdout, "refused thread\n");
    }
}

/// Where glibc itself has no restartable sequences, as in qemu, it starts threads without them; a filter that came later would end the process.
#[test]
fn a_process_that_never_had_restartable_sequences_has_a_thread_of_ours() {
    let cases = [("glibc.pthread.rseq=0", 2), ("", 1)];
    let cases = cases.iter().take(if registers_sequences() { 2 } else { 1 });
    for (tunables, threads) in cases {
        let dir = scratch();
        let mut host = Host::new(HOST)
            .arguments(&["--no-sequences", "script"])
            .recorded_in(dir.path())
            .variable("SA_PROFILE_THREADS", "1")
            .variable("GLIBC_TUNABLES", *tunables)
            .start();
        host.ask("spans work 10");
        let found = fs::read_dir(format!("/proc/{}/task", host.pid())).map_or(0, Iterator::count);
        assert_eq!(found, *threads, "{tunables}");
        let _outcome = host.end().quiet();
    }
}

/// Whether the C library is a glibc from 2.35 on.
fn registers_sequences() -> bool {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = said.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&said);
    let minor = text.trim().strip_prefix("glibc 2.");
    minor.and_then(|minor| minor.parse::<u32>().ok()) >= Some(35)
}

/// The calls of a program and its threads, by name.
fn traced(host: Host, log: &std::path::Path) -> BTreeSet<String> {
    let _outcome = host.run().quiet();
    let log = fs::read_to_string(log).expect("strace wrote it");
    let call = |line: &str| {
        let (_, call) = line.split_once(' ')?;
        let (name, _) = call.trim_start().split_once('(')?;
        let is_name = name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_name.then(|| name.to_owned())
    };
    log.lines().filter_map(call).collect()
}

#[test]
fn issue_19_every_system_call_of_the_recorder_is_in_the_list() {
    let name = "issue_19_every_system_call_of_the_recorder_is_in_the_list";
    let works = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .status();
    if !works.is_ok_and(|status| status.success()) {
        return skip(name, "strace does not work here");
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
    let listed: BTreeSet<_> = CALLS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let unlisted: Vec<_> = recorded
        .difference(&plain)
        .filter(|call| !NEVER_REFUSED.contains(&call.as_str()) && !listed.contains(*call))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    assert!(
        recorded.contains("writev") && recorded.contains("membarrier"),
        "{recorded:?}"
    );
}
