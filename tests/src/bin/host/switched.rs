//! Hosts that are switched on and off while they record.

use crate::forks::{end_now, fork};
use crate::work::record;
use sa_recorder::{Args, AsyncSpan, Level, SpanGuard, async_span, begin, end, span};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Records on `threads` threads as fast as it goes, until stdin ends.
pub(crate) fn steady(threads: u64) {
    static STOP: AtomicBool = AtomicBool::new(false);
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            thread::spawn(|| {
                while !STOP.load(Ordering::Relaxed) {
                    let _span = span!("host", "steady");
                }
            })
        })
        .collect();
    wait_for_the_end();
    STOP.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// Records `count` steps with two spans in each, one every 2 ms.
pub(crate) fn steps(count: u64) {
    for number in 0..count {
        let _step = span!("engine", "step", number = number);
        record("in-step", 2);
        thread::sleep(Duration::from_millis(2));
    }
}

fn wait_for_the_end() {
    let mut rest = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut rest);
    assert!(read.is_ok(), "stdin is readable");
}

/// Forks; the child records a span every ms until its parent is gone.
pub(crate) fn fork_steady() -> i32 {
    // SAFETY: getpid has no preconditions.
    let parent = unsafe { libc::getpid() };
    let child = fork();
    if child == 0 {
        // SAFETY: getppid has no preconditions.
        while unsafe { libc::getppid() } == parent {
            record("forked", 1);
            thread::sleep(Duration::from_millis(1));
        }
        end_now();
    }
    child
}

/// Spans that the script holds open.
#[derive(Default)]
pub(crate) struct Open {
    guards: Vec<SpanGuard>,
    lanes: Vec<AsyncSpan>,
}

impl Open {
    /// Opens or ends one span; false if that is no such command.
    pub(crate) fn obey(&mut self, words: &[&str]) -> bool {
        match *words {
            ["guard"] => self.guards.push(span!("open", "guard", number = 1)),
            ["guard-arg"] => {
                let guard = self.guards.last_mut().expect("an open guard");
                guard.arg("late", 2);
            }
            ["guard-end"] => drop(self.guards.pop()),
            ["lane"] => self.lanes.push(async_span!("open", "lane", number = 1)),
            ["lane-end"] => drop(self.lanes.pop()),
            ["begin", name] => begin(Level::E2e, "open", name),
            ["end", name] => end(&Args::new().with("ended_as", name)),
            _ => return false,
        }
        true
    }
}
