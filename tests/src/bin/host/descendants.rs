//! A host that starts many others, which join it by the environment.

use crate::work::record;
use std::process::{Child, Command, Stdio};

/// Children that run at the same time.
const AT_A_TIME: usize = 8;

fn start(label: &str) -> Child {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program)
        .args(["spans", label, "1"])
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
            let mut first = running.remove(0);
            first.wait().expect("the child can be waited for");
        }
        running.push(start(&format!("process-{index}")));
    }
    for mut child in running {
        child.wait().expect("the child can be waited for");
    }
    record("parent", 1);
    println!("processes {count}");
}
