//! A host that forbids itself one system call from some moment on, and keeps recording.

use crate::work::record;
use crate::{sandbox, starved};
use sa_recorder::Recorder;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Number of times that all threads have been asked to record.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// Number of threads that are ready to be asked.
static STARTED: AtomicUsize = AtomicUsize::new(0);
/// Number of requests that threads have completed.
static DONE: AtomicU32 = AtomicU32::new(0);

/// Spans that a thread records per request, enough for several flushes.
const SPANS: u64 = 3000;

/// Forbids the call before the first event, between events, or after all are recorded. A number that is no system call forbids nothing.
pub(crate) fn run(when: &str, call: u64, error: u64) {
    let refuse = || {
        let error = i32::try_from(error).expect("an error number");
        sandbox::refuse(call.cast_signed(), error);
    };
    let threads = [1, 1, 2];
    for first in threads {
        std::thread::spawn(move || record_when_asked(first));
    }
    while STARTED.load(Ordering::Acquire) < threads.len() {
        std::thread::yield_now(); // the C library cannot start a thread once its system calls are forbidden
    }
    match when {
        "before" => {
            refuse();
            record_everywhere(2);
        }
        "between" => {
            record_everywhere(2);
            refuse();
            record_everywhere(3);
        }
        "thread" => refuse_beside_a_new_thread(refuse),
        _ => {
            record_everywhere(2);
            refuse();
        }
    }
}

/// Forbids the call just after the recorder may have started its thread. Everything runs on one processor, so a thread that has not run yet starts under the filter.
fn refuse_beside_a_new_thread(refuse: impl Fn()) {
    // SAFETY: `sched_getcpu` takes no arguments.
    let here = unsafe { libc::sched_getcpu() };
    let here = usize::try_from(here).expect("the number of a processor");
    // SAFETY: all bits zero is the empty set of processors.
    let mut only: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number came from the kernel.
    unsafe { libc::CPU_SET(here, &mut only) };
    // SAFETY: the set is valid for the call.
    let bound = unsafe { libc::sched_setaffinity(0, size_of_val(&only), &raw const only) };
    assert_eq!(bound, 0, "a process may stay on one processor");
    record_all();
    refuse();
    Recorder::get().flush();
}

/// Records on this thread and on `others` others, and waits for them without any system call, because any call may be the forbidden one.
fn record_everywhere(others: u32) {
    let so_far = DONE.load(Ordering::Acquire);
    ASKED.fetch_add(1, Ordering::Release);
    record_all();
    Recorder::get().flush();
    while DONE.load(Ordering::Acquire) < so_far + others {
        std::thread::yield_now();
    }
}

/// Records at each request from number `first` on. One thread only becomes known to the recorder after the call is forbidden.
fn record_when_asked(first: u32) {
    STARTED.fetch_add(1, Ordering::Release);
    for turn in first.. {
        while ASKED.load(Ordering::Acquire) < turn {
            std::thread::yield_now();
        }
        record_all();
        DONE.fetch_add(1, Ordering::Release);
    }
}

fn record_all() {
    starved::record("some text");
    record("refused", SPANS);
}
