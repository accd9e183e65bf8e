//! Recordings that one process begins one after the other.

use crate::work::record;
use sa_recorder::{AsyncSpanId, Level, Recorder, SpanId, span};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Begins a recording in `dir`, with the rest as the environment has it.
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

/// What the threads of a stress test are told, and what they tell.
struct Stress {
    /// Even while one recording is in force, odd while it is changed.
    phase: AtomicU64,
    stop: AtomicBool,
}

/// Restarts while threads record at full speed; says how many spans of each recording were acknowledged: begun and ended within it.
pub(crate) fn stress(dir: &str, threads: u64, cycles: u64) {
    let dir = PathBuf::from(dir);
    let place = |cycle: u64| dir.join(cycle.to_string());
    let stress = Stress {
        phase: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    assert!(Recorder::start_with(|name| variable(&place(0), name)).is_ok());
    let acknowledged: Vec<Vec<(u64, u64)>> = thread::scope(|scope| {
        let record = |thread| stress.record(thread, cycles);
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || record(thread)))
            .collect();
        for cycle in 1..cycles {
            thread::sleep(Duration::from_millis(3));
            stress.phase.fetch_add(1, Ordering::SeqCst);
            let begun = Recorder::start_with(|name| variable(&place(cycle), name));
            assert!(begun.is_ok(), "{begun:?}");
            stress.phase.fetch_add(1, Ordering::SeqCst);
        }
        thread::sleep(Duration::from_millis(3));
        stress.stop.store(true, Ordering::SeqCst);
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|counts| counts.expect("no panic")).collect()
    });
    Recorder::get().finish();
    for cycle in 0..usize::try_from(cycles).expect("a small number") {
        let sums: Vec<String> = acknowledged
            .iter()
            .map(|ranges| format!("{} {}", ranges[cycle].0, ranges[cycle].1))
            .collect();
        println!("{}", sums.join(","));
    }
}

impl Stress {
    /// Records until it is told to stop; gives the first and the last of the spans that are sure to be in each recording, 0 for none. Labelled with the recording and the thread, and
    /// numbered from 1; others have the label `between`.
    fn record(&self, thread: u64, cycles: u64) -> Vec<(u64, u64)> {
        let mut ranges = vec![(0, 0); usize::try_from(cycles).expect("a small number")];
        let mut index = 0;
        while !self.stop.load(Ordering::SeqCst) {
            index += 1;
            let phase = self.phase.load(Ordering::SeqCst);
            let cycle = phase / 2;
            let label = if phase.is_multiple_of(2) {
                format!("{cycle}.{thread}")
            } else {
                format!("between.{thread}")
            };
            let written = {
                let _outer = crate::work::open(&label, index);
                SpanId::begin(Level::E2e, "inner", "inner").end();
                self.phase.load(Ordering::SeqCst) == phase
            };
            let same = written && self.phase.load(Ordering::SeqCst) == phase;
            if same && phase.is_multiple_of(2) {
                let range = &mut ranges[usize::try_from(cycle).expect("a small number")];
                range.1 = index;
                if range.0 == 0 {
                    range.0 = index;
                }
            }
        }
        ranges
    }
}

/// What is open while recording is restarted ends in neither recording.
pub(crate) fn open(dir: &str) {
    let dir = Path::new(dir);
    let recorder = Recorder::get();
    start(&dir.join("old"));
    recorder.set_process_name("restarted");
    recorder.set_thread_name("lead");
    let mut guard = span!("host", "open.guard");
    let id = SpanId::begin(Level::E2e, "host", "open.id");
    let spread = recorder.async_span(Level::E2e, "host", "open.async");
    let spread_id = AsyncSpanId::begin(Level::E2e, "host", "open.async.id");
    sa_recorder::begin(Level::E2e, "host", "open.begin");
    let track = recorder.thread_track(1).expect("a track");
    start(&dir.join("new"));
    record("before-the-ends", 5);
    let inner = span!("other", "inner");
    guard.arg("late", 1);
    id.arg("late", 1);
    spread_id.arg("late", 1);
    sa_recorder::end(&sa_recorder::Args::new());
    drop(guard);
    id.end();
    drop(spread);
    spread_id.end();
    let args = sa_recorder::Args::new();
    track.instant(Level::E2e, "host", "open.track", 1, &args);
    drop(inner);
    record("after-the-ends", 5);
    println!("open");
}

/// Restarts so many times in the same directory; prints what the process holds after a tenth of them and at the end.
pub(crate) fn many(dir: &str, cycles: u64) {
    let dir = Path::new(dir);
    for cycle in 1..=cycles {
        assert_eq!(
            Recorder::start_with(|name| variable(dir, name)),
            Ok(Recorder::get())
        );
        record("main", 10);
        thread::scope(|scope| {
            scope.spawn(|| record("worker", 10));
        });
        let _open = Recorder::get().async_span(Level::E2e, "other", "open");
        if cycle == cycles / 10 || cycle == cycles {
            Recorder::get().flush();
            println!("{}", held());
        }
    }
}

/// What this process holds, as JSON.
fn held() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let rings = maps.lines().filter(|line| line.contains(".ring")).count();
    let entries = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
    let status = |key: &str| crate::stack::status_kib(key);
    serde_json::json!({
        "anon_kib": status("RssAnon:"),
        "shared_kib": status("RssShmem:") + status("RssFile:"),
        "ring_maps": rings,
        "maps": maps.lines().count(),
        "descriptors": entries("/proc/self/fd"),
        "threads": entries("/proc/self/task"),
    })
    .to_string()
}

/// Children that are forked while one recording begins: a begin moves what they leave aside, so the more there are the longer it takes, and
/// without a bound a slow machine would have ever more of them.
const CHILDREN_PER_CYCLE: u64 = 10;

/// Forks from one thread while another restarts; every child records under its own label, then ends at once.
pub(crate) fn forks(dir: &str, cycles: u64) {
    let dir = PathBuf::from(dir);
    start(&dir);
    let stop = AtomicBool::new(false);
    let allowed = AtomicU64::new(0);
    let children = thread::scope(|scope| {
        let forker = scope.spawn(|| {
            let mut children = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                if children.len() as u64 >= allowed.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                record("forker", 1);
                let child = crate::forks::fork();
                if child == 0 {
                    record("child", 7);
                    Recorder::get().finish();
                    crate::forks::end_now();
                }
                children.push(child);
                thread::sleep(Duration::from_millis(1));
            }
            children
        });
        for _ in 0..cycles {
            allowed.fetch_add(CHILDREN_PER_CYCLE, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
            assert_eq!(
                Recorder::start_with(|name| variable(&dir, name)),
                Ok(Recorder::get())
            );
        }
        stop.store(true, Ordering::SeqCst);
        forker.join().expect("no panic")
    });
    let well = children.iter().filter(|child| crate::forks::reap(**child));
    println!("{} {}", children.len(), well.count());
}
