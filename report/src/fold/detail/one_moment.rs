//! Details of one moment: what every process, device and request was doing.

use super::device_use::idle_at;
use super::{is_in_flight, load_at, parts};
use crate::gather::detail_events::{MomentEvents, OpenAt};
use crate::rows::IdleInterval;
use crate::table::{
    DeviceAt, DeviceTime, Finding, FindingNear, OneMoment, ProcessAt, RequestAt, RunReport, SpanAt,
    TraceRange,
};
use std::collections::BTreeMap;
use trace_merge::events::TraceThread;

/// Maximum number of listed requests.
const OLDEST: usize = 5;
/// Maximum number of listed findings.
const FINDINGS: usize = 2;

/// Returns what happened at the time `at_ns`: the phase of the run, open spans, devices, load, requests in flight and
/// the nearest findings. `idle` lists idle times of devices. The trace ends at `end_ns`.
pub(crate) fn one_moment(
    report: &RunReport,
    (at_ns, end_ns): (i64, i64),
    idle: &[IdleInterval],
    events: &MomentEvents,
    threads: &[TraceThread],
) -> OneMoment {
    let mut open: BTreeMap<usize, Vec<&OpenAt>> = BTreeMap::new();
    for span in events.open.values() {
        open.entry(threads[span.thread].process)
            .or_default()
            .push(span);
    }
    for spans in open.values_mut() {
        spans.sort_by_key(|span| (!threads[span.thread].is_main, span.start_ns));
    }
    let phases = report.run_phases.iter();
    let mut phases = phases.filter(|phase| phase.from_ns <= at_ns && at_ns < phase.to_ns);
    OneMoment {
        at_ns,
        phase: phases.next().map(|phase| phase.kind),
        processes: processes(report, at_ns, &open, threads),
        devices: report
            .timed()
            .map(|time| device(report, time, at_ns, idle, &open, threads))
            .collect(),
        load: load_at(report, &events.levels, at_ns, None),
        oldest: oldest(report, at_ns, end_ns),
        findings: findings(report, at_ns),
    }
}

/// Creates the report's entry for an open span, with the label of its thread.
fn span_at(open: &OpenAt, threads: &[TraceThread]) -> SpanAt {
    SpanAt {
        name: open.name.clone(),
        thread: threads[open.thread].label(),
        start_ns: open.start_ns,
        dur_ns: open.end_ns.map(|end_ns| end_ns - open.start_ns),
    }
}

/// Returns the entries of all processes that are neither devices nor groups of tracks, with their open spans at the
/// time `at_ns`. If a process had ended by then, its spans without an end are left out.
fn processes(
    report: &RunReport,
    at_ns: i64,
    open: &BTreeMap<usize, Vec<&OpenAt>>,
    threads: &[TraceThread],
) -> Vec<ProcessAt> {
    let processes = report.recorded.processes.iter().enumerate();
    let hosts = processes.filter(|(_, process)| !process.is_tracks && process.device.is_none());
    hosts
        .map(|(number, process)| {
            let ended_ns = process.last_ns.filter(|last_ns| *last_ns < at_ns);
            let open = open.get(&number).map_or(&[][..], Vec::as_slice);
            // The open spans of a dead process ended with it.
            let open = open
                .iter()
                .filter(|span| ended_ns.is_none() || span.end_ns.is_some());
            ProcessAt {
                name: report.process_name(number),
                spans: open.map(|span| span_at(span, threads)).collect(),
                ended_ns,
            }
        })
        .collect()
}

/// Returns the slice that a device ran at the time `at_ns`, or the cause and time range of its idle time.
fn device(
    report: &RunReport,
    time: &DeviceTime,
    at_ns: i64,
    idle: &[IdleInterval],
    open: &BTreeMap<usize, Vec<&OpenAt>>,
    threads: &[TraceThread],
) -> DeviceAt {
    let interval = idle_at(idle, time.process, at_ns);
    let numbers = report.recorded.processes.iter().enumerate();
    let tracks = numbers.filter(|(number, process)| {
        *number == time.process || process.device == Some(time.process)
    });
    let mut slices = tracks.filter_map(|(number, _)| open.get(&number)?.first());
    DeviceAt {
        name: report.process_name(time.process),
        slice: match interval {
            None => slices.next().map(|span| span_at(span, threads)),
            Some(_) => None,
        },
        idle: interval.map(|interval| interval.cause),
        idle_place: interval.map(|interval| TraceRange {
            from_ns: interval.start_ns,
            dur_ns: interval.dur_ns,
        }),
    }
}

/// Returns the requests in flight at the time `at_ns` that arrived first, at most [`OLDEST`].
fn oldest(report: &RunReport, at_ns: i64, end_ns: i64) -> Vec<RequestAt> {
    let requests = report.request.iter();
    let in_flight = requests.filter(|request| is_in_flight(request, at_ns));
    in_flight
        .take(OLDEST)
        .map(|request| {
            let age_ns = at_ns - request.begin_ns().unwrap_or(at_ns);
            let mut parts = parts(report, request, end_ns).into_iter();
            let part = parts.rfind(|(_, offset_ns, _)| *offset_ns <= age_ns);
            RequestAt {
                request_id: request.request_id.to_string(),
                age_ns,
                part: part.map(|(name, offset_ns, _)| (name, age_ns - offset_ns)),
            }
        })
        .collect()
}

/// Returns the findings whose places are nearest to the time `at_ns`, at most [`FINDINGS`]. Findings without a place
/// are left out.
fn findings(report: &RunReport, at_ns: i64) -> Vec<FindingNear> {
    let near = |finding: &Finding| {
        Some(FindingNear {
            rule: finding.rule,
            evidence: finding.evidence.clone(),
            place: finding.place?,
        })
    };
    let mut found: Vec<FindingNear> = report.findings.iter().filter_map(near).collect();
    found.sort_by_key(|finding| {
        let to_ns = finding.place.from_ns + finding.place.dur_ns;
        (finding.place.from_ns - at_ns).max(at_ns - to_ns).max(0)
    });
    found.truncate(FINDINGS);
    found
}
