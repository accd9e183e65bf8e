//! Different kinds of forks.

use crate::work;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time after which a child is considered hung.
const CHILD_DEADLINE: Duration = Duration::from_secs(20);
/// Number of threads that record while the main thread forks.
const BUSY_THREADS: u64 = 4;

/// Forks with the C library's function.
pub(crate) fn fork() -> libc::pid_t {
    // SAFETY: the callers' children use only the recorder, plain code and `_exit` or `exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork succeeds");
    pid
}

/// Forks with the system call alone, so that no `pthread_atfork` handler runs.
pub(crate) fn fork_raw() -> libc::pid_t {
    // SAFETY: as in `fork`; in addition, the process has only one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    assert!(pid >= 0, "fork succeeds");
    libc::pid_t::try_from(pid).expect("a pid")
}

/// Ends the process successfully without running exit handlers.
pub(crate) fn end_now() -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(crate::DONE.into()) }
}

/// Waits for `pid`. Kills it at the deadline. Returns true if it ended successfully.
pub(crate) fn reap(pid: libc::pid_t) -> bool {
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable for the length of the call.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == i32::from(crate::DONE);
        }
        if start.elapsed() > CHILD_DEADLINE {
            // SAFETY: `pid` is our own unreaped child.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            // SAFETY: a null status is allowed.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// Changes from root to an ordinary user.
pub(crate) fn become_user(user: u32) {
    // SAFETY: the list of groups is empty, so the null pointer is not read.
    let groups = unsafe { libc::setgroups(0, std::ptr::null()) };
    // SAFETY: setgid has no preconditions.
    let group = unsafe { libc::setgid(user) };
    // SAFETY: setuid has no preconditions.
    let user = unsafe { libc::setuid(user) };
    assert_eq!((groups, group, user), (0, 0, 0), "root gives up its rights");
}

/// Forks repeatedly while four threads record. Each child records one span. Prints the number of spans of each thread.
pub(crate) fn busy(forks: u64) {
    let is_over = AtomicBool::new(false);
    let counts: Vec<u64> = thread::scope(|scope| {
        let record = |number| record_until(&is_over, &format!("thread-{number}"));
        let threads: Vec<_> = (0..BUSY_THREADS)
            .map(|number| scope.spawn(move || record(number)))
            .collect();
        for index in 0..forks {
            let child = fork();
            if child == 0 {
                drop(work::open("forked", index));
                end_now();
            }
            assert!(reap(child), "child {index} hung or crashed");
        }
        is_over.store(true, Ordering::Relaxed);
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|count| count.expect("no panic")).collect()
    });
    println!("{counts:?}");
}

/// Records bursts of spans until `stop` is set, and returns their number.
fn record_until(stop: &AtomicBool, label: &str) -> u64 {
    let mut index = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..128 {
            drop(work::open(label, index));
            index += 1;
        }
        thread::sleep(Duration::from_micros(500));
    }
    index
}
