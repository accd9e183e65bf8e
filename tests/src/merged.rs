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
    let options = Options {
        output: Output::File(trace.to_path_buf()),
        ..Options::new([dir.to_path_buf()])
    };
    let report =
        trace_merge::merge(&options).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let read: Trace = serde_json::from_slice(&fs::read(trace).expect("the merged trace"))
        .expect("a trace in JSON");
    let mut damage: Vec<String> = (report.damage.list.iter())
        .map(|damage| format!("{damage:?}"))
        .collect();
    if damage.is_empty() && report.damage.total > 0 {
        damage.push(format!("{} places, none listed", report.damage.total));
    }
    let (total, added) = (report.events.total, report.events_added);
    let shown = read.events.len() as u64;
    if shown != total + added {
        damage.push(format!(
            "the report counts {total} + {added} events, the trace has {shown}"
        ));
    }
    let base_ns = u64::try_from(report.clocks.base_ns).expect("a base after boot");
    Seen::by_merge(read.events, base_ns, damage, report.losses.events)
}
