//! A host that forbids itself one system call, from some moment on, and records as if nothing were.

use crate::work::record;
use crate::{sandbox, starved};
use sa_recorder::Recorder;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// How often all threads have been asked to record.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// Threads that wait to be asked.
static STARTED: AtomicUsize = AtomicUsize::new(0);
/// How often one of them has.
static DONE: AtomicU32 = AtomicU32::new(0);

/// Spans that a thread records when it is asked: some flushes.
const SPANS: u64 = 3000;

/// Forbids the call before the first event, between events, or when all are recorded. A number that no call has forbids none.
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
        std::thread::yield_now(); // the C library starts no thread without its calls
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

/// Forbids the call on the only processor as soon as the recorder may have a thread: one that has not run yet begins under the filter.
fn refuse_beside_a_new_thread(refuse: impl Fn()) {
    // SAFETY: takes nothing.
    let here = unsafe { libc::sched_getcpu() };
    let here = usize::try_from(here).expect("the number of a processor");
    // SAFETY: all bits zero are a set of no processors.
    let mut only: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is one that the kernel gave.
    unsafe { libc::CPU_SET(here, &mut only) };
    // SAFETY: the set is valid for the call.
    let bound = unsafe { libc::sched_setaffinity(0, size_of_val(&only), &raw const only) };
    assert_eq!(bound, 0, "a process may stay on one processor");
    record_all();
    refuse();
    Recorder::get().flush();
}

/// Has this thread and so many others record, and waits for them without a call: which one is forbidden is not known here.
fn record_everywhere(others: u32) {
    let so_far = DONE.load(Ordering::Acquire);
    ASKED.fetch_add(1, Ordering::Release);
    record_all();
    Recorder::get().flush();
    while DONE.load(Ordering::Acquire) < so_far + others {
        std::thread::yield_now();
    }
}

/// Records each time that all are asked, beginning with the time `first`: one thread is new to the recorder when the call is forbidden already.
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
