//! Spans with a label and an index, and the recorder's state as JSON.

use sa_recorder::{Level, Recorder, SpanGuard, span};

/// Opens a span named `work`.
pub(crate) fn open(label: &str, index: u64) -> SpanGuard {
    let host_pid = std::process::id();
    span!(
        "host",
        "work",
        label = label,
        index = index,
        host_pid = host_pid
    )
}

/// Records `count` spans named `work`.
pub(crate) fn record(label: &str, count: u64) {
    (0..count).for_each(|index| drop(open(label, index)));
}

/// Ends the process with SIGKILL.
pub(crate) fn die() {
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Returns the process's recorder state as JSON, for tests that query a recorded host.
pub(crate) fn who() -> String {
    let recorder = Recorder::get();
    serde_json::json!({
        "enabled": recorder.is_enabled(),
        "kernel": recorder.includes(Level::Kernel),
        "main": recorder.is_main(),
        "run": recorder.run(),
        "fragment": recorder.fragment().unwrap_or_default(),
    })
    .to_string()
}
