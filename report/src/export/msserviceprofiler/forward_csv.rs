//! `forward.csv`: a row for each time a model ran in a worker.

use super::{host, ms, process_id};
use crate::csv_file::{CsvFile, maybe};
use crate::export::batch_span::{BatchKind, BatchSpan};
use crate::export::records::ExportRecords;
use crate::table::recorded::Recorded;
use std::collections::{HashMap, HashSet};
use trace_merge::Error;

const COLUMNS: [&str; 14] = [
    "name",
    "relative_start_time(ms)",
    "start_datetime",
    "end_datetime",
    "during_time(ms)",
    "bubble_time(ms)",
    "batch_size",
    "batch_type",
    "forward_iter",
    "dp_rank",
    "prof_id",
    "hostname",
    "start_time(ms)",
    "end_time(ms)",
];

pub(super) fn csv(records: &ExportRecords, recorded: &Recorded) -> Result<String, Error> {
    let mut file = CsvFile::new(&COLUMNS)?;
    let runs = runs(records);
    let ahead_ns = until_next(&runs);
    let (mut first_ns, mut numbers) = (HashMap::new(), HashMap::new());
    for (run, ahead_ns) in runs.into_iter().zip(ahead_ns) {
        let first_ns = *first_ns
            .entry(host(recorded, run.process))
            .or_insert(run.start_ns);
        let number = numbers.entry(run.process).or_insert(0_u64);
        *number += 1;
        let clock = records.clock;
        file.put([
            "forward".to_owned(),
            ms(run.start_ns - first_ns).to_string(),
            maybe(clock.date(run.start_ns)),
            maybe(clock.date(run.end_ns)),
            ms(run.dur_ns()).to_string(),
            maybe(ahead_ns.map(ms)),
            maybe(run.facts.size()),
            maybe(run.facts.batch_type()),
            number.to_string(),
            String::new(),
            process_id(recorded, run.process),
            host(recorded, run.process).to_owned(),
            clock.ms(run.start_ns).to_string(),
            clock.ms(run.end_ns).to_string(),
        ])?;
    }
    file.finish()
}

/// The forwards of each process, and the steps of one that has none: a recorder may not look into steps.
fn runs(records: &ExportRecords) -> Vec<&BatchSpan> {
    let of_forward = |batch: &&BatchSpan| batch.kind == BatchKind::Forward;
    let forwards = records.batches.iter().filter(of_forward);
    let with_forwards: HashSet<usize> = forwards.map(|batch| batch.process).collect();
    let is_run = |batch: &&BatchSpan| match batch.kind {
        BatchKind::Forward => true,
        BatchKind::Step => !with_forwards.contains(&batch.process),
        BatchKind::Schedule => false,
    };
    records.batches.iter().filter(is_run).collect()
}

/// From the end of each one to the begin of the next one of its process; nothing if that began before.
fn until_next(runs: &[&BatchSpan]) -> Vec<Option<i64>> {
    let mut next_ns: HashMap<usize, i64> = HashMap::new();
    let mut found: Vec<Option<i64>> = runs
        .iter()
        .rev()
        .map(|run| {
            let next_ns = next_ns.insert(run.process, run.start_ns);
            next_ns.map(|next_ns| next_ns.saturating_sub(run.end_ns).max(0))
        })
        .collect();
    found.reverse();
    found
}
