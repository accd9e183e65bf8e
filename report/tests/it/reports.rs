//! Reports of fixtures and hand-written traces, and checks of them.

use crate::events::{events, trace};
use serde_json::Value;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use trace_merge::{Options, Progress};
use trace_report::{ReportOptions, RunReport, read};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Returns the report of a whole trace.
pub(crate) fn report(path: impl Into<PathBuf>) -> RunReport {
    let options = ReportOptions {
        whole: true,
        ..ReportOptions::default()
    };
    report_with(path, &options)
}

pub(crate) fn report_with(path: impl Into<PathBuf>, options: &ReportOptions) -> RunReport {
    report_from(&[path.into()], options)
}

pub(crate) fn report_from(paths: &[PathBuf], options: &ReportOptions) -> RunReport {
    let inputs = Options::new(paths.to_vec());
    read(&inputs, options, &Progress::default()).unwrap()
}

/// Returns the report of a Chrome trace with these events.
pub(crate) fn report_from_events(lines: &[Value]) -> RunReport {
    report(trace(lines).path())
}

pub(crate) fn report_from_events_with(lines: &[Value], options: &ReportOptions) -> RunReport {
    report_with(trace(lines).path(), options)
}

/// Returns the report of the events in a text.
pub(crate) fn report_from_text(text: &str) -> RunReport {
    report_from_events(&events(text))
}

/// Returns the only element of a list.
#[track_caller]
pub(crate) fn only<T: Debug>(list: &[T]) -> &T {
    assert_eq!(list.len(), 1, "{list:?}");
    &list[0]
}

/// Checks that a text contains all of these texts.
#[track_caller]
pub(crate) fn has_words(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
}
