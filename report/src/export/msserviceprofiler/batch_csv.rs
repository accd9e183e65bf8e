//! `batch.csv`: a row for each batch that an engine put together, and for each step that a worker ran.

use super::{ms, process_id};
use crate::csv_file::{CsvFile, maybe};
use crate::export::batch_span::{BatchKind, BatchSpan};
use crate::export::cache_state::CacheState;
use crate::export::records::ExportRecords;
use crate::table::recorded::Recorded;
use serde_json::json;
use std::collections::HashMap;
use trace_merge::Error;

const COLUMNS: [&str; 24] = [
    "name",
    "res_list",
    "start_datetime",
    "end_datetime",
    "during_time(ms)",
    "batch_type",
    "prof_id",
    "batch_size",
    "prefill_batch_size",
    "decode_batch_size",
    "total_blocks",
    "used_blocks",
    "free_blocks",
    "blocks_allocated",
    "blocks_freed",
    "kvcache_usage_rate",
    "prefill_scheduled_tokens",
    "decode_scheduled_tokens",
    "total_scheduled_tokens",
    "dp_rank",
    "start_time(ms)",
    "end_time(ms)",
    "accepted_ratio",
    "accepted_ratio_per_pos",
];

pub(super) fn csv(records: &ExportRecords, recorded: &Recorded) -> Result<String, Error> {
    let mut file = CsvFile::new(&COLUMNS)?;
    let caches = Caches::of(&records.caches);
    let batches = records.batches.iter();
    for batch in batches.filter(|batch| batch.kind != BatchKind::Forward) {
        file.put(row(batch, &caches, records, recorded))?;
    }
    file.finish()
}

fn row(
    batch: &BatchSpan,
    caches: &Caches<'_>,
    records: &ExportRecords,
    recorded: &Recorded,
) -> [String; 24] {
    let (clock, facts) = (records.clock, &batch.facts);
    let name = match batch.kind {
        BatchKind::Schedule => "batchFrameworkProcessing",
        BatchKind::Step | BatchKind::Forward => "modelExec",
    };
    // Only an engine has a cache that it hands out.
    let is_engine = batch.kind == BatchKind::Schedule;
    let cache = caches.at(batch.process, batch.end_ns).filter(|_| is_engine);
    let before = caches.before(batch.process, batch.start_ns);
    let taken = cache.and_then(|cache| cache.taken_since(before?));
    let rids: Vec<_> = facts
        .request_ids
        .iter()
        .map(|id| json!({"rid": id}))
        .collect();
    let tokens = facts.prefill_tokens.zip(facts.decode_tokens);
    let blocks = cache.and_then(|cache| cache.blocks);
    [
        name.to_owned(),
        maybe((!rids.is_empty()).then(|| json!(rids))),
        maybe(clock.date(batch.start_ns)),
        maybe(clock.date(batch.end_ns)),
        ms(batch.dur_ns()).to_string(),
        maybe(facts.batch_type()),
        process_id(recorded, batch.process),
        maybe(facts.size()),
        maybe(facts.prefill_requests),
        maybe(facts.decode_requests),
        maybe(blocks.map(|(used, free)| used + free)),
        maybe(blocks.map(|(used, _)| used)),
        maybe(blocks.map(|(_, free)| free)),
        maybe(taken),
        maybe(taken.map(|blocks| -blocks)),
        maybe(cache.map(|cache| cache.used)),
        maybe(facts.prefill_tokens),
        maybe(facts.decode_tokens),
        maybe(tokens.map(|(prefill, decode)| prefill.saturating_add(decode))),
        String::new(),
        clock.ms(batch.start_ns).to_string(),
        clock.ms(batch.end_ns).to_string(),
        String::new(),
        String::new(),
    ]
}

/// What each engine said of its cache, in the order of time.
struct Caches<'a> {
    of_process: HashMap<usize, Vec<&'a CacheState>>,
}

impl<'a> Caches<'a> {
    fn of(states: &'a [CacheState]) -> Caches<'a> {
        let mut of_process: HashMap<usize, Vec<&CacheState>> = HashMap::new();
        for state in states {
            of_process.entry(state.process).or_default().push(state);
        }
        Caches { of_process }
    }

    /// The last that was said up to a time.
    fn at(&self, process: usize, ns: i64) -> Option<&'a CacheState> {
        let states = self.of_process.get(&process)?;
        let behind = states.partition_point(|state| state.at_ns <= ns);
        states.get(behind.checked_sub(1)?).copied()
    }

    /// The last that was said before it.
    fn before(&self, process: usize, ns: i64) -> Option<&'a CacheState> {
        self.at(process, ns.checked_sub(1)?)
    }
}
