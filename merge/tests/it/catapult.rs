//! Merged traces in catapult's importer, the code behind chrome://tracing.

use crate::view::View;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Returns what chrome://tracing would show of a trace. Returns `None`, with a loud message, if the
/// importer cannot be set up.
pub(crate) fn view(test: &str, trace: &Path) -> Option<View> {
    let catapult = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/catapult/catapult");
    let output = match Command::new(&catapult).arg(trace).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED {test}: {}: {error}", catapult.display());
            return None;
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        eprintln!("SKIPPED {test}: catapult's importer cannot be set up: {stderr}");
        return None;
    }
    // A warning counts as a failure.
    assert!(output.status.success(), "{stderr}");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["warnings"], serde_json::json!([]));
    let number = |key: &str| shown[key].as_u64().unwrap();
    let mut view = View {
        slices: number("slices") + number("instants") + number("async"),
        flows: number("flows"),
        counters: number("counters"),
        processes: number("processes"),
        ..View::default()
    };
    for row in shown["rows"].as_array().unwrap() {
        view.add_row(row);
    }
    Some(view)
}
