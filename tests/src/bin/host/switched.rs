//! Hosts whose recording is switched on and off.

use crate::work::record;
use sa_recorder::span;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Records on `threads` threads at full speed until stdin ends.
pub(crate) fn steady(threads: u64) {
    let is_over = AtomicBool::new(false);
    let record = || {
        while !is_over.load(Ordering::Relaxed) {
            let _span = span!("host", "steady");
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(record);
        }
        let rest = std::io::read_to_string(std::io::stdin());
        is_over.store(true, Ordering::Relaxed);
        rest.expect("stdin is readable");
    });
}

/// Records `count` steps with two spans in each, one step every 2 ms.
pub(crate) fn steps(count: u64) {
    for number in 0..count {
        let _step = span!("engine", "step", number = number);
        record("in-step", 2);
        thread::sleep(Duration::from_millis(2));
    }
}

/// Records a span every ms until the parent process is gone.
pub(crate) fn beside_parent(label: &str) {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        record(label, 1);
        thread::sleep(Duration::from_millis(1));
    }
}
