//! `kvcache.csv`: a row each time an engine counted the blocks of its cache.

use crate::csv_file::{CsvFile, maybe};
use crate::export::cache_state::CacheState;
use crate::export::records::ExportRecords;
use std::collections::HashMap;
use trace_merge::Error;

const COLUMNS: [&str; 10] = [
    "rid",
    "name",
    "start_time",
    "total_blocks",
    "used_blocks",
    "free_blocks",
    "blocks_allocated",
    "blocks_freed",
    "device_kvcache_left",
    "kvcache_usage_rate",
];

/// What msServiceProfiler calls the state of the cache after a batch was put together.
const NAME: &str = "KVCacheStatus";

pub(super) fn csv(records: &ExportRecords) -> Result<String, Error> {
    let mut file = CsvFile::new(&COLUMNS)?;
    let mut last: HashMap<usize, &CacheState> = HashMap::new();
    for state in &records.caches {
        let before = last.insert(state.process, state);
        let taken = before.and_then(|before| state.taken_since(before));
        let at_ms = || records.clock.ms(state.at_ns).to_string();
        let blocks = state.blocks;
        file.put([
            String::new(),
            NAME.to_owned(),
            records.clock.date(state.at_ns).unwrap_or_else(at_ms),
            maybe(blocks.map(|(used, free)| used + free)),
            maybe(blocks.map(|(used, _)| used)),
            maybe(blocks.map(|(_, free)| free)),
            maybe(taken),
            maybe(taken.map(|blocks| -blocks)),
            String::new(),
            state.used.to_string(),
        ])?;
    }
    file.finish()
}
