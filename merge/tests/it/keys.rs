//! docs/report.md and docs/clocks.md explain the keys of reports, and of the traces' `otherData`.

use crate::foreign;
use crate::invocation::{Merged, RunDir};
use crate::split::split;
use format_oracle::writer::line::On;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Objects whose keys are not fixed.
const FREE: &str = "events_by_phase damage_by_kind damage repaired_by_kind repaired";

fn add_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                keys.insert(key.clone());
                if !FREE.split(' ').any(|free| free == key) || value.is_array() {
                    add_keys(value, keys);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| add_keys(value, keys)),
        _ => {}
    }
}

/// Returns a run with overlapping steps of one request, one step with a number that JSON does not
/// allow, and a damaged line.
fn run() -> RunDir {
    let (dir, on) = (RunDir::new(), On { pid: 5, tid: 5 });
    let step = |number: u64| on.span(1_000 * number, 1_500, "step", r#""request_id":"r-1""#);
    let mut lines: Vec<String> = (1..50).map(step).collect();
    lines.push(on.span(60_000, 5, "odd", r#""load":NaN"#));
    dir.put("5", (lines.join("\n") + "\ngarbage\n").as_bytes());
    dir
}

/// Returns the keys of several merges. Each merge reports something that the others do not.
fn all_keys() -> BTreeSet<String> {
    let (mut keys, dir) = (BTreeSet::new(), run());
    let mut add = |options: &[&str], paths: &[&Path]| {
        let merged = Merged::new(options, paths);
        add_keys(&merged.report.0, &mut keys);
        add_keys(&merged.trace.document["otherData"], &mut keys);
    };
    add(&["--last", "1s", "--request", "r-1"], &[dir.path()]);
    let recorded = foreign::run(7, 5_000_000_000);
    add(&[], &[recorded.path(), &foreign::fixture("kineto.json")]);
    let (parts, report) = split(dir.path(), &[], "4kB");
    add_keys(&report.0, &mut keys);
    add_keys(&parts[0].trace.document["otherData"], &mut keys);
    keys
}

#[test]
fn the_documents_explain_the_keys_of_reports() {
    let mut documents = include_str!("../../../docs/report.md").to_owned();
    documents += include_str!("../../../docs/clocks.md");
    let keys = all_keys();
    for key in &keys {
        assert!(documents.contains(&format!("`{key}`")), "{key}");
    }
    let expected = "drift_ppm spans_cut packed text_bytes part requests";
    assert!(
        expected.split(' ').all(|key| keys.contains(key)),
        "{keys:?}"
    );
}
