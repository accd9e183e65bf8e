//! The tables of [msServiceProfiler](https://gitcode.com/Ascend/msserviceprofiler), from what this one recorded.

mod batch_csv;
mod forward_csv;
mod kvcache_csv;
mod request_csv;

use super::ExportFile;
use super::records::ExportRecords;
use crate::table::recorded::Recorded;
use crate::table::run_report::RunReport;
use trace_merge::Error;

/// Its four tables that are of requests, batches, the cache and the model.
pub(super) fn files(report: &RunReport, records: &ExportRecords) -> Result<Vec<ExportFile>, Error> {
    let recorded = &report.recorded;
    let requests = request_csv::csv(&report.request, records.clock)?;
    let forwards = forward_csv::csv(records, recorded)?;
    Ok(vec![
        ExportFile::new("request.csv", requests),
        ExportFile::new("batch.csv", batch_csv::csv(records, recorded)?),
        ExportFile::new("kvcache.csv", kvcache_csv::csv(records)?),
        ExportFile::new("forward.csv", forwards),
    ])
}

/// Returns a duration in ms.
fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Returns the id that a process had on its host.
fn process_id(recorded: &Recorded, process: usize) -> String {
    let process = recorded.processes.get(process);
    process.map_or_else(String::new, |process| process.pid.to_string())
}

/// Returns the host of a process; an empty text if it is not known.
fn host(recorded: &Recorded, process: usize) -> &str {
    let process = recorded.processes.get(process);
    let host = process.and_then(|process| process.host.as_deref());
    host.unwrap_or_default()
}
