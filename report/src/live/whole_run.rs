//! Figures of a run that is over, from a report on the whole run.

use super::histogram::{Histogram, TOKEN_BOUNDS};
use super::live_names::{LiveName, top_names};
use super::live_requests::RequestSums;
use super::live_stats::{
    LiveDevice, LiveEngine, LiveLag, LiveRecorded, LiveStats, ProcessLabel, live_engine,
    live_request,
};
use crate::options::ReportOptions;
use crate::read::{Streams, fold};
use crate::table::{NameTime, RunReport};
use std::collections::BTreeMap;
use std::path::Path;
use trace_merge::{Error, Options, Progress, Runs, events};

/// Maximum number of events of a run that is read again at its end.
const MOST_EVENTS: u64 = 20_000_000;
/// Number of threads that read the run. It is small because other programs may need the machine.
const THREADS: usize = 2;

/// Figures of a report. Figures that only a live run has are empty.
#[derive(Debug)]
pub(super) struct WholeRun(LiveStats);

impl WholeRun {
    /// Reads a run from a directory, including the events in rings of killed processes.
    pub(super) fn read(directory: &Path, run: &str) -> Result<WholeRun, Error> {
        let options = Options {
            settle: false,
            threads: THREADS,
            runs: Runs::Named(run.to_owned()),
            ..Options::new([directory.to_owned()])
        };
        let report_options = ReportOptions {
            most_events: Some(MOST_EVENTS),
            whole: true,
            ..ReportOptions::default()
        };
        let ((report, gaps), _) = events::read(&options, &Progress::default(), |events| {
            let mut gaps = Histogram::new(&TOKEN_BOUNDS);
            let streams = Streams {
                on_gap: Some(&mut |ns| gaps.add_value(ns)),
                ..Streams::default()
            };
            let report = fold(events, &report_options, streams)?;
            Ok::<_, Error>((report, gaps))
        })?;
        Ok(WholeRun::from_report(report, gaps))
    }

    fn from_report(report: RunReport, gaps: Histogram) -> WholeRun {
        let (engine, device, names_of) = (engines(&report), devices(&report), report.names.len());
        let newest_ns = report.recorded.wall_ns;
        let mut sums = RequestSums::default();
        for request in report.request {
            sums.add_request(request, &[]);
        }
        sums.sort();
        sums.all.itl = gaps;
        let mut lost = BTreeMap::new();
        for loss in &report.recorded.losses {
            let count = lost.entry(loss.cause.clone()).or_default();
            let counts = [loss.events, loss.changed, loss.processes];
            *count = counts.into_iter().fold(*count, u64::saturating_add);
        }
        let listed = |requests: &[_]| {
            let requests = requests.iter();
            requests
                .map(|request| live_request(request, newest_ns))
                .collect()
        };
        WholeRun(LiveStats {
            is_final: true,
            unfinished: sums.unfinished,
            mixed: report.requests.mixed,
            latest: listed(&sums.latest),
            slowest: listed(&sums.slowest),
            requests: sums.all,
            engine,
            device,
            names: names(report.names),
            names_of,
            recorded: LiveRecorded {
                events: report.recorded.events,
                lost,
                ..LiveRecorded::default()
            },
            behind: LiveLag {
                damaged_lines: report.recorded.damaged,
                ..LiveLag::default()
            },
            ..LiveStats::default()
        })
    }

    /// Returns these figures, completed with the ones from `live` that only a live run has.
    pub(super) fn complete(&self, live: LiveStats) -> LiveStats {
        let mut stats = self.0.clone();
        for engine in &mut stats.engine {
            let is_same = |one: &&LiveEngine| (&one.name, one.pid) == (&engine.name, engine.pid);
            if let Some(live) = live.engine.iter().find(is_same) {
                engine.running = live.running;
                engine.waiting = live.waiting;
                engine.kv_used = live.kv_used;
            }
        }
        for device in &mut stats.device {
            let is_same = |one: &&LiveDevice| (&one.name, one.pid) == (&device.name, device.pid);
            if let Some(live) = live.device.iter().find(is_same) {
                (device.busy_10_s, device.busy_60_s) = (live.busy_10_s, live.busy_60_s);
            }
        }
        LiveStats {
            schema: live.schema,
            state: live.state,
            run: live.run,
            realtime_ns: live.realtime_ns,
            last_event_realtime_ns: live.last_event_realtime_ns,
            no_event_for_ns: live.no_event_for_ns,
            recorded: LiveRecorded {
                events: stats.recorded.events,
                lost: stats.recorded.lost,
                ..live.recorded
            },
            last_10_s: live.last_10_s,
            last_60_s: live.last_60_s,
            past: live.past,
            process: live.process,
            ..stats
        }
    }
}

fn label(report: &RunReport, process: usize) -> ProcessLabel {
    let name = report.process_name(process);
    let process = report.recorded.processes.get(process);
    let pid = process.and_then(|process| u32::try_from(process.pid).ok());
    let host = process.and_then(|process| process.host.clone());
    (name, pid.unwrap_or(0), host.unwrap_or_default())
}

fn engines(report: &RunReport) -> Vec<LiveEngine> {
    let engines = report.batching.iter();
    engines
        .map(|batching| live_engine(label(report, batching.process), batching))
        .collect()
}

fn devices(report: &RunReport) -> Vec<LiveDevice> {
    report
        .timed()
        .map(|time| {
            let (name, pid, host) = label(report, time.process);
            LiveDevice {
                name,
                pid,
                host,
                is_runner: time.is_runner,
                slices: time.slices,
                busy_ns: time.busy_ns,
                wall_ns: time.wall_ns,
                busy_10_s: 0.0,
                busy_60_s: 0.0,
            }
        })
        .collect()
}

/// Returns the names with the most time.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the mean of durations times their number is their sum"
)]
fn names(times: Vec<NameTime>) -> Vec<LiveName> {
    let name = |time: NameTime| LiveName {
        row: time.row_kind,
        category: time.category,
        name: time.name,
        ncall: time.duration.n,
        total_ns: (time.duration.mean_ns * time.duration.n as f64).round() as i64,
        max_ns: time.duration.max_ns,
    };
    let counted = times.into_iter().filter(|time| time.duration.n > 0);
    top_names(counted.map(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use format_oracle::writer::Process;

    #[test]
    fn losses_beyond_all_numbers_stop_at_the_largest() {
        let dir = tempfile::tempdir().unwrap();
        let process = Process::new(7);
        let mut fragment = process.fragment();
        for tid in [7, 8] {
            let loss = process.thread(tid).loss(1_000, "disk_full", u64::MAX, "");
            fragment.line(&loss);
        }
        fragment.write_here(dir.path());
        let whole = WholeRun::read(dir.path(), "run-a").unwrap();
        assert_eq!(
            whole.0.recorded.lost,
            BTreeMap::from([("disk_full".to_owned(), u64::MAX)])
        );
    }
}
