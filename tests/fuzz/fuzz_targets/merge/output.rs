//! Reads a merge's output with serde_json and `--check`.

use super::options::Plan;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::Read;
use std::path::{Path, PathBuf};
use trace_merge::Report;
use trace_merge::check::{Rule, check};

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<&'a RawValue>,
}

/// Checks and removes the trace or its parts. Returns the number of events.
pub(crate) fn check_and_remove(report: &Report, plan: &Plan) -> u64 {
    let whole = report.output.path.iter().filter(|_| !plan.is_split);
    let parts = report.output.parts.iter().map(|part| &part.path);
    let paths: Vec<&PathBuf> = whole.chain(parts).collect();
    assert!(!paths.is_empty(), "there is a trace");
    let events = |path: &&PathBuf| {
        check_output(path, plan);
        let text = text(path, plan.is_gzip);
        std::fs::remove_file(path).expect("it was there");
        let document: Document<'_> = serde_json::from_slice(&text).expect("the trace is JSON");
        document.events.len() as u64
    };
    paths.iter().map(events).sum()
}

fn check_output(path: &Path, plan: &Plan) {
    let report = check(path).expect("the trace can be read");
    assert!(report.is_loaded, "{}", report.text());
    if plan.is_verbatim {
        return; // a verbatim merge keeps the recorded lines, whatever their faults
    }
    for finding in &report.findings {
        let is_allowed = finding.rule.lacks_counterpart() || finding.rule == Rule::Overlap;
        assert!(is_allowed, "{}", report.text());
    }
}

fn text(path: &Path, is_gzip: bool) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("the trace is there");
    if !is_gzip {
        return bytes;
    }
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes.as_slice()).read_to_end(&mut text);
    read.expect("the trace is whole");
    text
}
