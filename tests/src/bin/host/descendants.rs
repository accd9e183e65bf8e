//! Hosts that start other hosts: joined by the environment, many at a time, or twice under the same pid.

use crate::work::record;
use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::time::Duration;

/// Children that run at the same time.
const AT_A_TIME: usize = 8;

unsafe extern "C" {
    static environ: *const *mut c_char;
}

fn program() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// Starts one child by `posix_spawn` and three by `Command`, then records itself.
pub(crate) fn spawn(count: u64) {
    let spawned = posix_spawn(&["spans", "spawned", &count.to_string()]);
    let commands: Vec<Child> = (0..3)
        .map(|number| command(&format!("command-{number}"), count))
        .collect();
    record("parent", count);
    let mut ended_well = u32::from(wait(spawned));
    for mut child in commands {
        let status = child.wait().expect("the child can be waited for");
        ended_well += u32::from(status.code() == Some(i32::from(crate::DONE)));
    }
    println!("spawn {count} children ended well: {ended_well}");
}

/// Starts one child in another working directory, then records itself.
pub(crate) fn spawn_in(dir: &str, count: u64) {
    let mut child = Command::new(program())
        .args(["spans", "child", &count.to_string()])
        .current_dir(dir)
        .stdout(Stdio::null())
        .spawn()
        .expect("the child starts");
    record("parent", count);
    child.wait().expect("the child can be waited for");
    println!("spawn-in {count}");
}

fn command(label: &str, count: u64) -> Child {
    Command::new(program())
        .args(["spans", label, &count.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the child starts")
}

fn posix_spawn(arguments: &[&str]) -> libc::pid_t {
    let path =
        CString::new(program().into_os_string().into_encoded_bytes()).expect("a path without NUL");
    let words: Vec<CString> = arguments
        .iter()
        .map(|word| CString::new(*word).expect("a word without NUL"))
        .collect();
    let mut argv: Vec<*mut c_char> = vec![path.as_ptr().cast_mut()];
    argv.extend(words.iter().map(|word| word.as_ptr().cast_mut()));
    argv.push(ptr::null_mut());
    let mut pid = 0;
    // SAFETY: reading the pointer of the C library; no other thread changes the environment now.
    let environment = unsafe { environ };
    // SAFETY: path, argv and environment are NUL-terminated and outlive the call.
    let status = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            ptr::null(),
            ptr::null(),
            argv.as_ptr(),
            environment,
        )
    };
    assert_eq!(status, 0, "posix_spawn succeeds");
    pid
}

fn wait(pid: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: `status` is writable for the length of the call.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    ended == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == i32::from(crate::DONE)
}

/// Starts `count` children with one span each, a few at a time.
pub(crate) fn many(count: u64) {
    let mut running: Vec<Child> = Vec::new();
    for index in 0..count {
        if running.len() == AT_A_TIME {
            running
                .remove(0)
                .wait()
                .expect("the child can be waited for");
        }
        running.push(command(&format!("process-{index}"), 1));
    }
    for mut child in running {
        child.wait().expect("the child can be waited for");
    }
    record("parent", 1);
    println!("processes {count}");
}

/// Starts two children one after the other that both get `pid`; this process must be alone in its pid namespace.
pub(crate) fn same_pid(pid: u64, count: u64) {
    let mut got = Vec::new();
    for label in ["first", "second"] {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())
            .expect("ns_last_pid is writable");
        let mut child = command(label, count);
        got.push(child.id());
        child.wait().expect("the child can be waited for");
        // Start times are told in ticks of 10 ms.
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("pids {got:?}");
}
