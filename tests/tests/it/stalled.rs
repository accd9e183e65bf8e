//! A file system that hangs may delay the host by seconds but never block it, both with the recorder's own thread and without it.
//!
//! The preloaded library of `faults.rs` makes calls hang while a test says so.

use crate::faults::with_faults;
use crate::host;
use e2e::host_support::{HostRecording, Live, Merged, Outcome, scratch};
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum duration of a run: more than a second for each action of the host, but finite.
const BOUND: Duration = Duration::from_secs(8);
/// Time after which the recorder's own thread is inside a write.
const UNTIL_IT_WRITES: Duration = Duration::from_millis(600);
/// Longer than a thread waits for a write.
const LATE: Duration = Duration::from_millis(1500);
const HANGING_WRITES: &[&str] = &["writev=hang@1+"];

/// A host that has recorded ten spans. At first, only the first plan for its calls is active.
struct Stalled {
    dir: TempDir,
    switch: fs::File,
    plans: usize,
    host: Live,
    began: Instant,
}

impl Stalled {
    /// Starts a host with this value of `SA_PROFILE_THREADS`, and activates the first plan.
    fn new(threads: &str, plans: &[&str]) -> Stalled {
        let dir = scratch();
        let counts = dir.path().join("counts");
        let host = host(&dir.path().join("run"), &["script"])
            .variable("SA_PROFILE_THREADS", threads)
            .deadline(Duration::from_secs(30));
        let host = with_faults(host, &plans.join(","), &counts);
        let switch = fs::File::options().write(true).open(&counts).unwrap();
        let mut stalled = Stalled {
            dir,
            switch,
            plans: plans.len(),
            host: host.start(),
            began: Instant::now(),
        };
        stalled.activate(0);
        stalled.host.ask("exit-on-term, spans begun 10, flush");
        stalled.activate(1);
        stalled
    }

    /// Activates the first `plans` plans.
    fn activate(&self, plans: usize) {
        let inactive = (self.plans - plans) as u64;
        let bytes = inactive.to_ne_bytes();
        self.switch.write_all_at(&bytes, 16).unwrap();
    }

    /// Ends the host and asserts its exit code and that it did not take too long.
    fn end(self, code: i32) -> (Outcome, TempDir) {
        let outcome = self.host.end();
        assert_call_made(&self.dir);
        assert_eq!(outcome.status.code(), Some(code), "{outcome:?}");
        assert!(self.began.elapsed() < BOUND, "{:?}", self.began.elapsed());
        (outcome, self.dir)
    }
}

/// Asserts that a call was made while a plan for it was active.
fn assert_call_made(dir: &TempDir) {
    let counts = fs::read(dir.path().join("counts")).unwrap();
    assert_ne!(counts[..8], [0; 8], "no such call was made");
}

fn found(dir: &TempDir) -> HostRecording {
    HostRecording::in_dir(&dir.path().join("run"))
}

/// The write that starts when the ring is three quarters full never ends, so the ring fills up. A host that is faster than the recorder's thread writes itself
/// (docs/threads.md).
#[test]
fn a_hanging_write_does_not_hang_the_host_even_at_full_speed() {
    for (threads, spans) in [("", 10), ("1", 10), ("", 10_000)] {
        let mut stalled = Stalled::new(threads, HANGING_WRITES);
        stalled.host.ask(&format!("spans later {spans}"));
        if spans == 10 {
            std::thread::sleep(UNTIL_IT_WRITES);
            stalled.host.ask("flush, who, large");
        }
        stalled.end(7);
    }
}

/// The thread that checks the control file hangs there, so that no thread is in a write when the ring fills up.
#[test]
fn a_hanging_check_of_the_control_file_does_not_hang_the_host() {
    for threads in ["", "1"] {
        let mut stalled = Stalled::new(threads, &["control=hang@1+", "writev=hang@1+"]);
        // The events span more than two seconds. The first event in each second checks the control file.
        for number in 0..50 {
            stalled.host.ask(&format!("spans {number} 1"));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_call_made(&stalled.dir);
        stalled.activate(2);
        stalled.host.ask("spans later 10000, large");
        stalled.end(7);
    }
}

#[test]
fn after_a_hang_the_host_has_one_thread_and_nothing_is_lost() {
    let mut stalled = Stalled::new("", HANGING_WRITES);
    stalled.host.ask("spans within 10, flush");
    stalled.activate(0);
    while stalled.host.threads() > 1 {
        assert!(stalled.began.elapsed() < BOUND, "a thread is left");
        std::thread::sleep(Duration::from_millis(1));
    }
    stalled.host.ask("spans after 10");
    found(&stalled.end(7).1).assert_accounted(30);
}

/// The span is either in the file or counted as lost, but not both.
#[test]
fn a_span_larger_than_a_ring_is_written_late_or_counted() {
    for (is_late, threads, lost) in [(true, "", 0), (false, "", 1), (false, "1", 1)] {
        let mut stalled = Stalled::new(threads, HANGING_WRITES);
        if is_late {
            stalled.host.send("large");
            std::thread::sleep(LATE);
            stalled.activate(0);
            stalled.host.answer();
            std::thread::sleep(LATE); // by then the span is written
            stalled.host.ask("spans after 10");
        } else {
            stalled.host.ask("spans after 10");
            std::thread::sleep(UNTIL_IT_WRITES);
            stalled.host.ask("large");
        }
        let (_outcome, dir) = stalled.end(7);
        let found = found(&dir);
        found.assert_accounted(21);
        assert_eq!(found.lost, lost, "{is_late}, {threads}");
        let merged = Merged::newest(&dir.path().join("run"));
        let events = merged.events().iter();
        let causes = events.filter_map(|event| event["args"]["cause"].as_str());
        let expected = vec!["busy"; lost as usize];
        assert_eq!(causes.collect::<Vec<_>>(), expected, "{is_late}, {threads}");
    }
}

/// This must also work if the calling thread itself is writing.
#[test]
fn a_signal_handler_may_exit_within_a_write() {
    for threads in ["", "0", "1"] {
        let mut stalled = Stalled::new(threads, &["writev=term@1+"]);
        stalled.host.send("spans later 10000, flush");
        stalled.end(8);
    }
}

/// Events that are only in memory are lost with the process. The ring counts them if possible, and otherwise a line on stderr does. A write before the hang may have saved them.
#[test]
fn events_lost_with_the_process_are_reported() {
    for (threads, rest) in [
        ("", Duration::ZERO),
        ("1", Duration::ZERO),
        ("", UNTIL_IT_WRITES),
    ] {
        // The thread's events stay in memory, because there is no space for its ring in the file, and the last write never ends.
        let mut stalled = Stalled::new(threads, &["fallocate=28@1+", "writev=hang@1+"]);
        stalled.host.ask("thread parked, spans later 10");
        stalled.activate(2);
        std::thread::sleep(rest);
        let (outcome, dir) = stalled.end(7);
        if !outcome.stderr.contains("of 1 thread of process") {
            found(&dir).assert_accounted(20); // ten from each thread
        }
    }
}
