//! Recordings that one process starts one after the other.

use crate::forks::{end_now, fork, reap};
use crate::work::record;
use sa_recorder::{Level, Recorder, SpanId};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Starts a recording in `dir`, with all other settings from the environment.
pub(crate) fn start(dir: &Path) -> String {
    match Recorder::start_with(|name| variable(dir, name)) {
        Ok(_) => crate::work::who(),
        Err(error) => error.to_string(),
    }
}

fn variable(dir: &Path, name: &str) -> Option<OsString> {
    if name == "SA_PROFILE_DIR" {
        return Some(dir.as_os_str().to_owned());
    }
    std::env::var_os(name)
}

/// State shared by the threads of a stress test.
struct Stress {
    /// Even while a recording is active, odd while it is being replaced.
    phase: AtomicU64,
    stop: AtomicBool,
}

/// Restarts while threads record at full speed. For each thread, prints the spans that were acknowledged in each recording, because they began and ended within it.
pub(crate) fn stress(dir: &str, threads: u64, cycles: u64) {
    let dir = PathBuf::from(dir);
    let directory = |cycle: u64| dir.join(cycle.to_string());
    let stress = Stress {
        phase: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    assert!(Recorder::start_with(|name| variable(&directory(0), name)).is_ok());
    let acknowledged: Vec<Vec<[u64; 2]>> = thread::scope(|scope| {
        let record = |thread| stress.record(thread, cycles);
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || record(thread)))
            .collect();
        for cycle in 1..cycles {
            thread::sleep(Duration::from_millis(3));
            stress.phase.fetch_add(1, Ordering::SeqCst);
            let begun = Recorder::start_with(|name| variable(&directory(cycle), name));
            assert!(begun.is_ok(), "{begun:?}");
            stress.phase.fetch_add(1, Ordering::SeqCst);
        }
        thread::sleep(Duration::from_millis(3));
        stress.stop.store(true, Ordering::SeqCst);
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|counts| counts.expect("no panic")).collect()
    });
    Recorder::get().finish();
    println!("{acknowledged:?}");
}

impl Stress {
    /// Records until `stop` is set. Returns the first and the last span that must be in each recording, or 0 if there is none. These spans are labelled with the
    /// recording and the thread, and numbered from 1. Others have the label `between`.
    fn record(&self, thread: u64, cycles: u64) -> Vec<[u64; 2]> {
        let mut ranges = vec![[0, 0]; usize::try_from(cycles).expect("a small number")];
        let phase = || self.phase.load(Ordering::SeqCst);
        for index in 1.. {
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
            let begun = phase();
            let (cycle, is_between) = (begun / 2, !begun.is_multiple_of(2));
            let label = match is_between {
                true => format!("between.{thread}"),
                false => format!("{cycle}.{thread}"),
            };
            let outer = crate::work::open(&label, index);
            SpanId::begin(Level::E2e, "inner", "inner").end();
            drop(outer);
            if !is_between && phase() == begun {
                let range = &mut ranges[usize::try_from(cycle).expect("a small number")];
                let first = if range[0] == 0 { index } else { range[0] };
                *range = [first, index];
            }
        }
        ranges
    }
}

/// Number of children forked while one recording starts. A start moves their files aside, so it takes longer with more children.
const CHILDREN_PER_CYCLE: u64 = 10;

/// Forks on one thread while another one restarts the recording. Every child records under its own label and then ends.
pub(crate) fn forks(dir: &str, cycles: u64) {
    start(dir.as_ref());
    let mut children = Vec::new();
    for _ in 0..cycles {
        thread::scope(|scope| {
            let forker = scope.spawn(|| (0..CHILDREN_PER_CYCLE).map(fork_one).collect::<Vec<_>>());
            thread::sleep(Duration::from_millis(5));
            let begun = Recorder::start_with(|name| variable(dir.as_ref(), name));
            assert_eq!(begun, Ok(Recorder::get()));
            children.extend(forker.join().expect("no panic"));
        });
    }
    let well = children.iter().filter(|child| reap(**child));
    println!("{} {}", children.len(), well.count());
}

fn fork_one(_number: u64) -> libc::pid_t {
    record("forker", 1);
    let child = fork();
    if child == 0 {
        record("child", 7);
        Recorder::get().finish();
        end_now();
    }
    thread::sleep(Duration::from_millis(1));
    child
}
