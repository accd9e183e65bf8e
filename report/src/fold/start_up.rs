//! Finds the spans that took the most time until the server was ready.

use crate::gather::name_keys::NameKey;
use crate::gather::slice_record::{SliceRecord, thread_of};
use crate::nest::nest;
use crate::serving_clock::ServingClock;
use crate::stack_tree::StackTree;
use crate::table::{RowKind, RunPhase, RunPhaseKind, StartUp, StartUpSpan};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use trace_store::sorter::Sorted;

/// Maximum number of start-up spans in a report.
const SHOWN: usize = 20;

/// Returns the spans of a run's first phase if that is a start-up. `processes` lists the process of each thread.
pub(crate) fn start_up(
    slices: &Sorted<SliceRecord>,
    keys: &[NameKey],
    processes: &[usize],
    phases: &[RunPhase],
) -> io::Result<StartUp> {
    let first = phases
        .first()
        .filter(|phase| phase.kind == RunPhaseKind::StartUp);
    let Some(phase) = first else {
        return Ok(StartUp::default());
    };
    let clock = ServingClock::between((phase.from_ns, phase.to_ns));
    let mut spans: BTreeMap<(usize, &str), StartUpSpan> = BTreeMap::new();
    nest(
        slices,
        &clock,
        &mut StackTree::new(keys, processes),
        |slice| {
            let key = &keys[slice.key as usize];
            let process = thread_of(slice.track).and_then(|thread| processes.get(thread));
            let process = process.filter(|_| key.row_kind == RowKind::Thread);
            let Some(process) = process.copied() else {
                return Ok(()); // an async span may only have waited for others
            };
            let name = key.name.as_str();
            let span = spans.entry((process, name)).or_insert_with(|| StartUpSpan {
                name: name.to_owned(),
                process,
                start_ns: slice.start_ns,
                ncall: 0,
                ttot_ns: 0,
                tsub_ns: 0,
            });
            span.start_ns = span.start_ns.min(slice.start_ns);
            span.ncall += 1;
            let outermost_ns = if slice.is_outermost { slice.dur_ns } else { 0 };
            span.ttot_ns = span.ttot_ns.saturating_add(outermost_ns);
            span.tsub_ns = span.tsub_ns.saturating_add(slice.self_ns);
            Ok(())
        },
    )?;
    let mut spans: Vec<StartUpSpan> = spans.into_values().collect();
    spans.sort_by_key(|span| (Reverse(span.tsub_ns), span.start_ns));
    spans.truncate(SHOWN);
    Ok(StartUp {
        wall_ns: phase.to_ns - phase.from_ns,
        spans,
    })
}
