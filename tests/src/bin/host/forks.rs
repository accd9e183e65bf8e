//! Forking hosts: with and without other threads, with spans open, and with an exec.

use crate::work::{self, record};
use sa_recorder::{Args, Level, Recorder, async_span, begin, end};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a child may take before it counts as hanging.
const CHILD_DEADLINE: Duration = Duration::from_secs(20);
/// Threads that record while the main thread forks.
const BUSY_THREADS: u64 = 4;

/// Forks as the C library does.
pub(crate) fn fork() -> libc::pid_t {
    // SAFETY: the callers' children use only the recorder, plain code and `_exit` or `exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork succeeds");
    pid
}

/// Ends the process without running any exit handler.
pub(crate) fn end_now() -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(0) }
}

/// Waits for `pid`; false if it did not end well within the deadline (then it is killed).
pub(crate) fn reap(pid: libc::pid_t) -> bool {
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable for the length of the call.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
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

/// `count` spans before the fork, `count` in the child, `count` in the parent after it.
pub(crate) fn once(ending: &str, count: u64) {
    record("before", count);
    let child = fork();
    if child == 0 {
        record("child", count);
        match ending {
            "_exit" => end_now(),
            "exit" => std::process::exit(0),
            "return" => return,
            _ => panic!("host: unknown ending {ending}"),
        }
    }
    let ended_well = ending == "return" || reap(child);
    record("after", count);
    if ending == "return" {
        reap(child);
    }
    println!("fork {count} child ended well: {ended_well}");
}

/// A process with a name forks, and its child forks again, by the system call alone if `raw`. None of them names itself. The grandchild's first call begins a
/// recording anew.
pub(crate) fn named(way: &str, name: &str) {
    let fork = if way == "raw" { fork_raw } else { fork };
    if !name.is_empty() {
        Recorder::get().set_process_name(name);
    }
    record("parent", 3);
    let child = fork();
    if child == 0 {
        record("child", 3);
        let grandchild = fork();
        if grandchild == 0 {
            let again = Recorder::start_with(|name| std::env::var_os(name));
            again.expect("a recording");
            record("grandchild", 3);
            end_now();
        }
        reap(grandchild);
        end_now();
    }
    reap(child);
}

/// Forks without the C library, so that nothing that waits for forks is called.
fn fork_raw() -> libc::pid_t {
    // SAFETY: as `fork`, and the process has one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    assert!(pid >= 0, "fork succeeds");
    libc::pid_t::try_from(pid).expect("a pid")
}

/// As a daemon does: the parent makes the directory, and its child gives up its rights for those of `user` before it records. So does a child of
/// that one.
pub(crate) fn drop_rights(ending: &str, user: u32, count: u64) {
    record("before", count);
    let child = fork();
    if child == 0 {
        become_user(user);
        record("child", count);
        let grandchild = fork();
        if grandchild == 0 {
            record("grandchild", count);
            end_now();
        }
        reap(grandchild);
        end_now();
    }
    let ended_well = reap(child);
    if ending == "killed" {
        crate::work::die();
    }
    record("after", count);
    println!("child without rights ended well: {ended_well}");
}

fn become_user(user: u32) {
    // SAFETY: an empty list of groups is at no address.
    let groups = unsafe { libc::setgroups(0, std::ptr::null()) };
    // SAFETY: setgid has no preconditions.
    let group = unsafe { libc::setgid(user) };
    // SAFETY: setuid has no preconditions.
    let user = unsafe { libc::setuid(user) };
    assert_eq!((groups, group, user), (0, 0, 0), "root gives up its rights");
}

/// Forks again and again while four threads record; each child records one span.
pub(crate) fn busy(forks: u64) {
    static STOP: AtomicBool = AtomicBool::new(false);
    let threads: Vec<_> = (0..BUSY_THREADS)
        .map(|number| thread::spawn(move || record_until(&STOP, &format!("thread-{number}"))))
        .collect();
    let mut failed = 0;
    for index in 0..forks {
        let child = fork();
        if child == 0 {
            drop(work::open("forked", index));
            end_now();
        }
        failed += u64::from(!reap(child));
    }
    STOP.store(true, Ordering::Relaxed);
    let counts: Vec<u64> = threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect();
    println!(
        "{}",
        serde_json::json!({ "failed": failed, "threads": counts })
    );
}

/// Records bursts of spans until told to stop; gives their number.
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

/// Forks twice with spans of every kind open; one child ends them, the other leaves them.
pub(crate) fn open() {
    let host_pid = std::process::id();
    let outer = work::open("open.guard", 0);
    let lane = async_span!(
        "host",
        "work",
        label = "open.async",
        index = 0,
        host_pid = host_pid
    );
    begin(Level::E2e, "host", "work");
    let ender = fork();
    if ender == 0 {
        record("child.ender", 3);
        end(&Args::new().with("label", "open.begun").with("index", 0));
        drop(lane);
        drop(outer);
        record("child.ended", 3);
        end_now();
    }
    let leaver = fork();
    if leaver == 0 {
        record("child.leaver", 3);
        end_now();
    }
    let ended_well = [reap(ender), reap(leaver)];
    end(&Args::new()
        .with("label", "open.begun")
        .with("index", 0)
        .with("host_pid", u64::from(host_pid)));
    drop(lane);
    drop(outer);
    println!("open {ended_well:?}");
}

/// Records, then becomes another program in the same process with a span open.
pub(crate) fn exec(count: u64) {
    record("before", count);
    Recorder::get().set_process_name("before-exec");
    let _open = work::open("open.exec", 0);
    let program = std::env::current_exe().expect("the path of this program");
    let error = Command::new(program)
        .args(["spans", "after", &count.to_string()])
        .exec();
    panic!("exec: {error}");
}
