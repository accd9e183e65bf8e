//! What a merge wrote, read by serde_json and by `--check`.

use super::options::Plan;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use trace_merge::Report;
use trace_merge::check::{Rule, check};

/// What stands in a trace, in all its parts.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) events: u64,
    /// How often each line of the recipe is there.
    pub(crate) serials: BTreeMap<u64, u64>,
    /// Whether those are in the order of their times.
    pub(crate) is_sorted: bool,
    last_us: f64,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<&'a RawValue>,
}

impl Shown {
    /// Reads what was written, and removes it.
    pub(crate) fn take(report: &Report, plan: &Plan) -> Shown {
        let mut shown = Shown {
            is_sorted: true,
            ..Shown::default()
        };
        let whole = report
            .output
            .path
            .iter()
            .filter(|_| !plan.is_split)
            .cloned();
        let parts = report.output.parts.iter().map(|part| part.path.clone());
        let paths: Vec<PathBuf> = whole.chain(parts).collect();
        assert!(!paths.is_empty(), "there is a trace");
        for path in paths {
            check_output(&path, plan);
            shown.read(&text(&path, plan.is_gzip));
            std::fs::remove_file(path).expect("it was there");
        }
        shown
    }

    fn read(&mut self, text: &[u8]) {
        let document: Document<'_> = serde_json::from_slice(text).expect("the trace is JSON");
        self.events += document.events.len() as u64;
        for event in document.events {
            if event.get().contains(r#""serial":"#) {
                self.line(event.get());
            }
        }
    }

    /// One of the recipe's lines, unless it only looks like one.
    fn line(&mut self, event: &str) {
        let Ok(event) = serde_json::from_str::<Value>(event) else {
            return;
        };
        let Some(serial) = event["args"]["serial"].as_u64() else {
            return;
        };
        *self.serials.entry(serial).or_default() += 1;
        let ts = event["ts"].as_f64().unwrap_or(0.0);
        self.is_sorted &= ts >= self.last_us;
        self.last_us = ts;
    }
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
