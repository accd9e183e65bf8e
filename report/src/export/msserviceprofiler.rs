//! The tables of [msServiceProfiler](https://gitcode.com/Ascend/msserviceprofiler), from what this one recorded.

mod batch_csv;
mod cell;
mod forward_csv;
mod kvcache_csv;
mod request_csv;

use super::export_file::ExportFile;
use super::records::ExportRecords;
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
