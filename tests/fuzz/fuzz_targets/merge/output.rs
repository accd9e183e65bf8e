//! What a merge wrote, read by serde_json and by `--check`.

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

/// Reads the trace, or its parts, removes it and returns the number of its events.
pub(crate) fn take(report: &Report, plan: &Plan) -> u64 {
    let whole = report.output.path.iter().filter(|_| !plan.is_split);
    let parts = report.output.parts.iter().map(|part| &part.path);
    let paths: Vec<&PathBuf> = whole.chain(parts).collect();
    assert!(!paths.is_empty(), "there is a trace");
    let take = |path: &&PathBuf| {
        check_output(path, plan);
        let text = text(path, plan.is_gzip);
        std::fs::remove_file(path).expect("it was there");
        let document: Document<'_> = serde_json::from_slice(&text).expect("the trace is JSON");
        document.events.len() as u64
    };
    paths.iter().map(take).sum()
}

fn check_output(path: &Path, plan: &Plan) {
    let report = check(path).expect("the trace can be read");
    assert!(report.is_loaded, "{}", report.text());
    if plan.is_verbatim {
        return; // its lines are as they were recorded
    }
    for finding in &report.findings {
        let may_be_there = finding.rule.is_of_recording() || finding.rule == Rule::Overlap;
        assert!(may_be_there, "{}", report.text());
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
