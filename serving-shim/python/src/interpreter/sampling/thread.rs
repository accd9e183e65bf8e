//! The sampling thread: when it takes samples, and how much time it may use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use sa_recorder::{Levels, Recorder, host, now_ns};

use super::Settings;
use super::codes::Codes;
use super::snapshot::{Sample, sample_threads};
use super::thread_tracks::ThreadTracks;

/// Divisor of the thread's share of time: samples take at most one part in this many.
const SHARE: u64 = 50;
/// Wait for the GIL from which a sample counts as late. Another thread then held it during one call of a library, which had begun before the wait.
const LONG_NS: u64 = 10_000_000;

/// State of the sampling thread.
struct Sampler {
    codes: Codes,
    tracks: ThreadTracks,
}

/// Runs the sampling thread: samples all Python threads at each interval until `should_end` is set, then writes the frames that are still on the stacks.
pub(super) fn run(settings: &Settings, should_end: &AtomicBool) {
    let mut sampler = Sampler {
        codes: Codes::default(),
        tracks: ThreadTracks::default(),
    };
    let interval_ns = u64::try_from(settings.interval.as_nanos()).unwrap_or(u64::MAX);
    if last_name().is_empty() {
        name_process(&settings.process_name);
    }
    let (mut due_ns, mut before_ns) = (now_ns(), 0);
    while !should_end.load(Ordering::Acquire) {
        let held_ns = if Recorder::get().is_enabled() {
            sampler.sample()
        } else {
            sampler.tracks.end(now_ns());
            0
        };
        let now_ns = now_ns();
        // The shorter of two, because on a busy machine a sample may take long only because this thread had no core.
        due_ns = (due_ns + interval_ns).max(now_ns + held_ns.min(before_ns) * SHARE);
        before_ns = held_ns;
        wait_until(due_ns, should_end);
    }
    sampler.tracks.end(now_ns());
    let codes = sampler.codes;
    let _ = Python::try_attach(|_| drop(codes)); // without an interpreter, the objects no longer exist
}

/// Sleeps until the time `due_ns`, or until `should_end` is set. Continues to sleep if the thread wakes up for no reason.
fn wait_until(due_ns: u64, should_end: &AtomicBool) {
    while !should_end.load(Ordering::Acquire) {
        let left_ns = due_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return;
        }
        host::park_timeout(Duration::from_nanos(left_ns));
    }
}

impl Sampler {
    /// Takes one sample of all Python threads. Returns for how many ns it held the GIL.
    fn sample(&mut self) -> u64 {
        let asked_ns = now_ns();
        let tracks = &self.tracks;
        let codes = &mut self.codes;
        let result = Python::try_attach(|py| {
            let got_ns = now_ns();
            let is_known = |ident, native_id| tracks.has_thread(ident, native_id);
            let sample = sample_threads(py, codes, is_known).ok();
            (got_ns, sample, now_ns() - got_ns)
        });
        let Some((got_ns, sample, held_ns)) = result else {
            return 0;
        };
        if let Some(mut sample) = sample {
            if got_ns - asked_ns > LONG_NS {
                sample.at_ns = asked_ns;
            }
            self.add(sample);
        }
        held_ns
    }

    fn add(&mut self, mut sample: Sample) {
        if let Some(name) = sample.process_name.take() {
            name_process(&name);
        }
        self.tracks.add(sample);
    }
}

/// The last name that sampling gave this process, or the process that forked it.
static LAST_NAME: Mutex<String> = Mutex::new(String::new());

fn last_name() -> MutexGuard<'static, String> {
    LAST_NAME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the name of the process in the trace, unless sampling has already given it this name. It may have got another name since, and a forked child is named
/// after its parent.
fn name_process(name: &str) {
    let recorder = Recorder::get();
    let is_there = recorder.levels() != Levels::NONE || recorder.fragment().is_some();
    if is_there && *last_name() != name {
        name.clone_into(&mut last_name());
        recorder.set_process_name(name);
    }
}
