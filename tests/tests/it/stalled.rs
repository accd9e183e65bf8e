//! A file system that hangs may cost the host seconds, never its life: neither with the recorder's own thread nor without.
//!
//! The preloaded library of `faults.rs` has the calls hang, from when a test says so and until it says so.

use crate::faults::with_faults;
use crate::host;
use e2e::host_support::{Found, Live, Merged, Outcome, scratch};
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than a second for each of what the host does, shorter than for ever.
const BOUND: Duration = Duration::from_secs(8);
/// After this time the recorder's own thread is in a write.
const UNTIL_IT_WRITES: Duration = Duration::from_millis(600);
/// Longer than a thread waits for a write.
const LATE: Duration = Duration::from_millis(1500);
const HANGING_WRITES: &[&str] = &["writev=hang@1+"];

/// A host that has recorded ten spans. At first, only the first plan for its calls is in force.
struct Stalled {
    dir: TempDir,
    switch: fs::File,
    plans: usize,
    host: Live,
    began: Instant,
}

impl Stalled {
    /// Starts it with the given value of `SA_PROFILE_THREADS`, and lets the first plan hold.
    fn new(threads: &str, plans: &[&str]) -> Stalled {
        let dir = scratch();
        let told = dir.path().join("told");
        let host = host(&dir.path().join("run"), &["script"])
            .variable("SA_PROFILE_THREADS", threads)
            .deadline(Duration::from_secs(30));
        let host = with_faults(host, &plans.join(","), &told);
        let switch = fs::File::options().write(true).open(&told).unwrap();
        let mut stalled = Stalled {
            dir,
            switch,
            plans: plans.len(),
            host: host.start(),
            began: Instant::now(),
        };
        stalled.hold(0);
        stalled.host.ask("exit-on-term, spans begun 10, flush");
        stalled.hold(1);
        stalled
    }

    /// Lets the first plans hold.
    fn hold(&self, plans: usize) {
        let left_out = (self.plans - plans) as u64;
        let bytes = left_out.to_ne_bytes();
        self.switch.write_all_at(&bytes, 16).unwrap();
    }

    /// Ends it, with this code and in time.
    fn end(self, code: i32) -> (Outcome, TempDir) {
        let outcome = self.host.end();
        assert_met(&self.dir);
        assert_eq!(outcome.status.code(), Some(code), "{outcome:?}");
        assert!(self.began.elapsed() < BOUND, "{:?}", self.began.elapsed());
        (outcome, self.dir)
    }
}

/// Asserts that a call was made for which a plan held.
fn assert_met(dir: &TempDir) {
    let told = fs::read(dir.path().join("told")).unwrap();
    assert_ne!(told[..8], [0; 8], "no such call was made");
}

fn found(dir: &TempDir) -> Found {
    Found::in_dir(&dir.path().join("run"))
}

/// The ring fills up while the write at its three quarters never ends. Beside a helper that the host is faster than, it writes itself (docs/threads.md).
#[test]
fn a_write_that_hangs_does_not_hang_the_host_also_if_it_records_fast() {
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

/// Whoever looks at the control file hangs there, so that nobody is in a write when the ring fills up.
#[test]
fn a_look_at_the_control_file_that_hangs_does_not_hang_the_host() {
    for threads in ["", "1"] {
        let mut stalled = Stalled::new(threads, &["control=hang@1+", "writev=hang@1+"]);
        // Events of more than two seconds: with the first one in each the control file is looked at.
        for number in 0..50 {
            stalled.host.ask(&format!("spans {number} 1"));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_met(&stalled.dir);
        stalled.hold(2);
        stalled.host.ask("spans later 10000, large");
        stalled.end(7);
    }
}

#[test]
fn after_a_hang_the_host_has_one_thread_and_nothing_is_lost() {
    let mut stalled = Stalled::new("", HANGING_WRITES);
    stalled.host.ask("spans within 10, flush");
    stalled.hold(0);
    while stalled.host.threads() > 1 {
        assert!(stalled.began.elapsed() < BOUND, "a thread is left");
        std::thread::sleep(Duration::from_millis(1));
    }
    stalled.host.ask("spans after 10");
    found(&stalled.end(7).1).assert_accounted(30);
}

/// It is in the file, or one that is lost: not both, and not neither.
#[test]
fn a_span_larger_than_a_ring_is_written_late_or_counted() {
    for (is_late, threads, lost) in [(true, "", 0), (false, "", 1), (false, "1", 1)] {
        let mut stalled = Stalled::new(threads, HANGING_WRITES);
        if is_late {
            stalled.host.tell("large");
            std::thread::sleep(LATE);
            stalled.hold(0);
            stalled.host.answer();
            std::thread::sleep(LATE); // by then it is written
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

/// Also where the calling thread itself writes.
#[test]
fn a_signal_handler_may_exit_within_a_write() {
    for threads in ["", "0", "1"] {
        let mut stalled = Stalled::new(threads, &["writev=term@1+"]);
        stalled.host.tell("spans later 10000, flush");
        stalled.end(8);
    }
}

/// Events in memory end with the process: the ring counts them, if it can be told, or a sentence says so. A write before the hang may have had them.
#[test]
fn events_that_end_with_the_process_are_said() {
    for (threads, rest) in [
        ("", Duration::ZERO),
        ("1", Duration::ZERO),
        ("", UNTIL_IT_WRITES),
    ] {
        // A thread's events wait in memory, for the file has no room for its ring, and the last write never ends.
        let mut stalled = Stalled::new(threads, &["fallocate=28@1+", "writev=hang@1+"]);
        stalled.host.ask("thread parked, spans later 10");
        stalled.hold(2);
        std::thread::sleep(rest);
        let (outcome, dir) = stalled.end(7);
        if !outcome.stderr.contains("of 1 thread of process") {
            found(&dir).assert_accounted(20); // ten of either thread
        }
    }
}
