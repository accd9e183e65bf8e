//! A run that is over, read as a whole: the figures of its report.

use super::histogram::{Histogram, TOKEN_BOUNDS};
use super::live_names::{LiveName, top_names};
use super::live_requests::RequestSums;
use super::live_stats::{
    Called, LiveBehind, LiveDevice, LiveEngine, LiveRecorded, LiveStats, live_engine, live_request,
};
use crate::options::ReportOptions;
use crate::read::{Streams, fold};
use crate::table::{NameTime, RunReport};
use std::collections::BTreeMap;
use std::path::Path;
use trace_merge::{Error, Options, Progress, Runs, events};

/// A run with more events is not read again at its end.
const MOST_EVENTS: u64 = 20_000_000;
/// Threads that read it: others may need the machine.
const THREADS: usize = 2;

/// The figures of a report. Figures that only a live run has are empty.
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
                of_gap: Some(&mut |ns| gaps.take(ns)),
                ..Streams::default()
            };
            let report = fold(events, &report_options, streams)?;
            Ok::<_, Error>((report, gaps))
        })?;
        Ok(WholeRun::of(report, gaps))
    }

    fn of(report: RunReport, gaps: Histogram) -> WholeRun {
        let (engine, device, names_of) = (engines(&report), devices(&report), report.names.len());
        let newest_ns = report.recorded.wall_ns;
        let mut sums = RequestSums::default();
        for request in report.request {
            sums.take(request, &[]);
        }
        sums.sort();
        sums.all.itl = gaps;
        let mut lost = BTreeMap::new();
        for loss in &report.recorded.losses {
            let of_cause = lost.entry(loss.cause.clone()).or_default();
            let counts = [loss.events, loss.changed, loss.processes];
            *of_cause = counts.into_iter().fold(*of_cause, u64::saturating_add);
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
            behind: LiveBehind {
                damaged_lines: report.recorded.damaged,
                ..LiveBehind::default()
            },
            ..LiveStats::default()
        })
    }

    /// Returns these figures, and takes the ones that only a live run has from `live`.
    pub(super) fn completed(&self, live: LiveStats) -> LiveStats {
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

fn called(report: &RunReport, process: usize) -> Called {
    let name = report.process_name(process);
    let process = report.recorded.processes.get(process);
    let pid = process.and_then(|process| u32::try_from(process.pid).ok());
    let host = process.and_then(|process| process.host.clone());
    (name, pid.unwrap_or(0), host.unwrap_or_default())
}

fn engines(report: &RunReport) -> Vec<LiveEngine> {
    let engines = report.batching.iter();
    engines
        .map(|of| live_engine(called(report, of.process), of))
        .collect()
}

fn devices(report: &RunReport) -> Vec<LiveDevice> {
    report
        .timed()
        .map(|of| {
            let (name, pid, host) = called(report, of.process);
            LiveDevice {
                name,
                pid,
                host,
                is_runner: of.is_runner,
                slices: of.slices,
                busy_ns: of.busy_ns,
                wall_ns: of.wall_ns,
                busy_10_s: 0.0,
                busy_60_s: 0.0,
            }
        })
        .collect()
}

/// Those with the most time.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the mean of durations times their number is their sum"
)]
fn names(of: Vec<NameTime>) -> Vec<LiveName> {
    let name = |of: NameTime| LiveName {
        row: of.row_kind,
        category: of.category,
        name: of.name,
        ncall: of.duration.n,
        total_ns: (of.duration.mean_ns * of.duration.n as f64).round() as i64,
        max_ns: of.duration.max_ns,
    };
    let counted = of.into_iter().filter(|of| of.duration.n > 0);
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
