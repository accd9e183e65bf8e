//! Spans that can be told apart, and the smallest programs made of them.

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

/// Records `count` of them.
pub(crate) fn record(label: &str, count: u64) {
    (0..count).for_each(|index| drop(open(label, index)));
}

/// Ends the process by SIGKILL.
pub(crate) fn die() {
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Records `count` spans and says so.
pub(crate) fn spans(label: &str, count: u64) {
    record(label, count);
    println!("spans {label} {count}");
}

/// Records `count` spans, then dies by SIGKILL.
pub(crate) fn killed(label: &str, count: u64) {
    record(label, count);
    die();
}

/// Says which process of which run this is; for tests that ask a recorded host about itself.
pub(crate) fn who() -> String {
    let recorder = Recorder::get();
    let path = |path: Option<std::path::PathBuf>| path.unwrap_or_default().display().to_string();
    serde_json::json!({
        "enabled": recorder.is_enabled(),
        "kernel": recorder.includes(Level::Kernel),
        "main": recorder.is_main(),
        "run": recorder.run(),
        "directory": path(recorder.directory()),
        "fragment": path(recorder.fragment()),
    })
    .to_string()
}

/// Merges a run directory into its own trace; 0 when that worked, 2 when not.
pub(crate) fn merge(dir: &str) -> u8 {
    let merged = trace_merge::merge(&trace_merge::Options::new([dir.into()]));
    if merged.is_ok() { 0 } else { 2 }
}
