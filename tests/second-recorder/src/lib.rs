//! A library that carries its own copy of the recorder, as a Python extension or a preload library does.
#![expect(unsafe_code, reason = "the exported name is the library's interface")]

use sa_recorder::span;
use std::sync::atomic::{AtomicU64, Ordering};

/// Records `count` spans labelled `library` through this library's recorder.
// SAFETY: no other object of the process exports this name.
#[unsafe(no_mangle)]
pub extern "C" fn second_recorder_record(count: u64) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let host_pid = std::process::id();
    for _ in 0..count {
        let index = NEXT.fetch_add(1, Ordering::Relaxed);
        let _span = span!(
            "host",
            "work",
            label = "library",
            index = index,
            host_pid = host_pid
        );
    }
}
