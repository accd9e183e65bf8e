//! Hosts that start other hosts: joined by the environment, many at a time, or twice under the same pid.

use crate::work::record;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Children that run at the same time.
const AT_A_TIME: usize = 8;

fn program() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
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
