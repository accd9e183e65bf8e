//! The screen of one moment.

use super::{cause, cells, load_words, ns, open_line, short, span_words, table};
use crate::table::{DeviceAt, OneMoment, ProcessAt, RunPhaseKind, TraceRange};
use sa_format::visible;

/// Maximum number of processes that are shown.
const PROCESSES: usize = 8;
/// Maximum number of devices that are shown.
const DEVICES: usize = 6;
/// Half of the time range that Perfetto shows, in ns.
const AROUND_NS: i64 = 25_000_000;

/// Returns the screen of one moment: its load, and what each process, device and request was doing.
pub(super) fn text(moment: &OneMoment, run: &str) -> String {
    let mut out = format!("at           {}", ns(moment.at_ns));
    if let Some(phase) = moment.phase {
        out.push_str(&format!(": {}", phase_words(phase)));
    }
    out.push_str(&format!("\nload         {}\n\n", load_words(&moment.load)));
    out.push_str(&processes(moment));
    out.push_str(&devices(moment));
    out.push_str(&requests(moment));
    for finding in &moment.findings {
        let TraceRange { from_ns, dur_ns } = finding.place;
        let when = match (from_ns > moment.at_ns, from_ns + dur_ns < moment.at_ns) {
            (true, _) => format!("{} later", ns(from_ns - moment.at_ns)),
            (_, true) => format!("{} earlier", ns(moment.at_ns - from_ns - dur_ns)),
            _ => "here".to_owned(),
        };
        out.push_str(&format!(
            "finding      {} ({when}): {}\n",
            finding.rule.replace('_', " "),
            visible(&finding.evidence)
        ));
    }
    if !moment.findings.is_empty() {
        out.push('\n');
    }
    let place = TraceRange {
        from_ns: (moment.at_ns - AROUND_NS).max(0),
        dur_ns: 2 * AROUND_NS,
    };
    out.push_str(&open_line(run, place));
    out
}

/// Returns words for the phase of the run to which the moment belongs.
fn phase_words(phase: RunPhaseKind) -> &'static str {
    match phase {
        RunPhaseKind::StartUp => "the server was starting",
        RunPhaseKind::Idle => "no request was in flight for a long time",
        RunPhaseKind::Serving => "the server was serving",
        RunPhaseKind::Shutdown => "after the last request",
    }
}

fn processes(moment: &OneMoment) -> String {
    let mut rows = vec![cells("process|innermost open span")];
    // Processes without an open span come last.
    let (busy, other): (Vec<_>, Vec<_>) = moment
        .processes
        .iter()
        .partition(|one| !one.spans.is_empty());
    for process in busy.into_iter().chain(other).take(PROCESSES) {
        rows.push(vec![short(&process.name, 20), doing(process, moment.at_ns)]);
    }
    let mut out = table(&rows, 0..0);
    if moment.processes.len() > PROCESSES {
        let more = moment.processes.len() - PROCESSES;
        out.push_str(&format!("  and {more} more: --json lists them\n"));
    }
    out.push('\n');
    out
}

/// Returns words for what a process was doing at `at_ns`: the innermost span of its first busy thread, or how long ago
/// its last event was.
fn doing(process: &ProcessAt, at_ns: i64) -> String {
    match (&process.spans[..], process.ended_ns) {
        ([], Some(ended_ns)) => format!("its last event was {} earlier", ns(at_ns - ended_ns)),
        ([], None) => "in no recorded span".to_owned(),
        ([only], _) => span_words(only, at_ns),
        ([first, others @ ..], _) => {
            let threads = match others.len() {
                1 => "1 more thread".to_owned(),
                n => format!("{n} more threads"),
            };
            format!("{}; {threads}", span_words(first, at_ns))
        }
    }
}

fn devices(moment: &OneMoment) -> String {
    if moment.devices.is_empty() {
        return String::new();
    }
    let mut rows = vec![cells("device|")];
    for device in moment.devices.iter().take(DEVICES) {
        rows.push(vec![short(&device.name, 26), state(device, moment.at_ns)]);
    }
    let mut out = table(&rows, 0..0);
    if moment.devices.len() > DEVICES {
        let more = moment.devices.len() - DEVICES;
        out.push_str(&format!("  and {more} more: --json lists them\n"));
    }
    out.push('\n');
    out
}

/// Returns words for what a device was doing at `at_ns`: why it was idle, or the slice that ran.
fn state(device: &DeviceAt, at_ns: i64) -> String {
    match (device.idle.zip(device.idle_place), &device.slice) {
        (Some((why, place)), _) => format!(
            "idle: {} (for {} of {})",
            cause(why),
            ns(at_ns - place.from_ns),
            ns(place.dur_ns)
        ),
        (None, Some(slice)) => format!("busy: {}", span_words(slice, at_ns)),
        (None, None) => "nothing recorded".to_owned(),
    }
}

fn requests(moment: &OneMoment) -> String {
    if moment.oldest.is_empty() {
        return String::new();
    }
    let mut rows = vec![cells("oldest request|in flight for|now in|for")];
    for request in &moment.oldest {
        let (part, part_ns) = request.part.clone().unwrap_or_default();
        rows.push(vec![
            short(&request.request_id, 36),
            ns(request.age_ns),
            part,
            ns(part_ns),
        ]);
    }
    let mut out = table(&rows, 1..2);
    out.push('\n');
    out
}
