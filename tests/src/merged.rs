//! A victim's recording as the merge shows it: merged with the library, and the trace read back.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use trace_merge::{Options, Output};

use crate::ledger::{Event, Seen};

#[derive(Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
}

/// Merges a run directory into `trace`, settling it as the command line does, and reads the trace back.
///
/// # Panics
///
/// If there is no trace, or it is no JSON: that is what the tests are about.
pub fn merge(dir: &Path, trace: &Path) -> Seen {
    try_merge(dir, trace).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}

/// Merges like [`merge`] where there may be nothing to merge.
///
/// # Errors
///
/// What the merge says.
///
/// # Panics
///
/// If the trace cannot be read back.
pub fn try_merge(dir: &Path, trace: &Path) -> Result<Seen, trace_merge::Error> {
    let output = Output::File(trace.to_path_buf());
    let options = Options {
        output,
        ..Options::new([dir.to_path_buf()])
    };
    let report = trace_merge::merge(&options)?;
    let read: Trace = serde_json::from_slice(&fs::read(trace).expect("the merged trace"))
        .expect("a trace in JSON");
    let mut damage: Vec<String> = report
        .damage
        .list
        .iter()
        .map(|damage| format!("{damage:?}"))
        .collect();
    if damage.is_empty() && report.damage.total > 0 {
        damage.push(format!(
            "{} damaged places, none listed",
            report.damage.total
        ));
    }
    let shown = u64::try_from(read.events.len()).unwrap_or(u64::MAX);
    if shown != report.events.total + report.events_added {
        damage.push(format!(
            "the report counts {} + {} events, the trace has {shown}",
            report.events.total, report.events_added
        ));
    }
    let base_ns = u64::try_from(report.clocks.base_ns).expect("a base after boot");
    Ok(Seen::by_merge(
        read.events,
        base_ns,
        damage,
        report.losses.events,
    ))
}
