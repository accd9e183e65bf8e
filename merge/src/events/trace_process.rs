//! A process of the trace, as consumers see it.

use crate::app::report::ProcessReport;
use crate::identity::process::{Process, ProcessKey};
use std::collections::BTreeMap;

/// A process, or a group of tracks that one recorded, such as the streams of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceProcess<'a> {
    /// What a merge says of it: name, ids, host, how it ended, its first and last time.
    pub report: &'a ProcessReport,
    /// The process that recorded it, by its number: itself, but for a group of tracks.
    pub recorder: usize,
    /// The trace of another profiler that it comes from.
    pub profiler: Option<&'a str>,
    /// What that trace says of it beside its name, such as `NPU 3` or `GPU 0, pid 4711`.
    pub labels: Option<&'a str>,
    /// The boot of its host, where its header names it: a host that was started anew has other clocks.
    pub boot_id: Option<&'a str>,
    /// The run that it recorded, where its header names one.
    pub run: Option<&'a str>,
    /// The clock of its times: processes with the same number share one. `None` for a trace that is the only input and has no clock.
    pub clock: Option<usize>,
    /// What its times may be off against those of the reference host, in ns; `None` where nothing tells. Times of one host have no error between them.
    pub clock_uncertainty_ns: Option<u64>,
}

/// All of them, in the order of the trace.
pub(super) fn trace_processes<'a>(
    processes: &'a [Process],
    reports: &'a [ProcessReport],
) -> Vec<TraceProcess<'a>> {
    let keys = processes.iter().map(|process| &process.key);
    let numbers: BTreeMap<&ProcessKey, usize> = keys.zip(0..).collect();
    let of = |((process, report), number): ((&'a Process, &'a ProcessReport), usize)| {
        let recorder = process.key.recorder();
        let boot_id = match recorder {
            ProcessKey::Recorded(_, boot_id, ..) => Some(boot_id.as_str()),
            _ => None,
        };
        TraceProcess {
            report,
            recorder: numbers.get(recorder).copied().unwrap_or(number),
            profiler: process.origin.as_ref().map(|origin| origin.name.as_str()),
            labels: process
                .origin
                .as_ref()
                .and_then(|origin| origin.labels.as_deref()),
            boot_id: boot_id.filter(|boot_id| !boot_id.is_empty()),
            run: process.run.as_deref(),
            clock: process.clock.map(|clock| clock.number),
            clock_uncertainty_ns: process.clock.and_then(|clock| clock.uncertainty_ns),
        }
    };
    processes.iter().zip(reports).zip(0..).map(of).collect()
}
