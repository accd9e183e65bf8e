//! Describes what was recorded and what is missing, from the report of the merge.

use crate::table::{Recorded, RecordedProcess};
use trace_merge::events::{Devices, TraceEvents, TraceProcess};
use trace_merge::{Exit, Report};

/// Returns the start of the first event and the end of the last one. For a window, returns its requested part, even if
/// events extend beyond it.
pub(crate) fn ends(events: &TraceEvents<'_>) -> Option<(i64, i64)> {
    let processes = events.processes().iter();
    let first_ns = processes
        .clone()
        .filter_map(|process| process.report.first_ns);
    let last_ns = processes.filter_map(|process| process.report.last_ns);
    let all = first_ns.min().zip(last_ns.max())?;
    let report = events.report();
    let window = report.window.as_ref();
    Some(window.map_or(all, |window| window.within(report.clocks.base_ns, all)))
}

/// Returns what was recorded.
pub(crate) fn recorded(events: &TraceEvents<'_>, devices: &Devices, unfinished: u64) -> Recorded {
    let report = events.report();
    let recorded = |(number, process): (usize, &TraceProcess<'_>)| {
        let (merged, label) = (process.report, killed_label(process));
        RecordedProcess {
            name: merged.name.clone(),
            pid: merged.pid,
            host: merged.host.clone(),
            is_tracks: devices.is_track_group(number),
            device: devices.device(number),
            device_name: device_name(events, number),
            end: merged.end.or(label.as_ref().map(|_| "killed")),
            exit: merged.exit.clone().or(label.flatten()),
            open_spans: merged.open_spans,
            last_ns: merged.last_ns,
            was_running: merged.was_running,
            events: merged.events,
            clock: process.clock,
            clock_uncertainty_ns: process.clock_uncertainty_ns,
        }
    };
    let processes = events.processes();
    let (first_ns, last_ns) = ends(events).unwrap_or_default();
    Recorded {
        wall_ns: last_ns.saturating_sub(first_ns),
        events: report.events.total,
        unfinished,
        lost_events: report.losses.events,
        losses: report.losses.list.clone(),
        damaged: report.damage.total,
        refused_processes: report.losses.refused_processes,
        cautions: cautions(report),
        processes: processes.iter().enumerate().map(recorded).collect(),
    }
}

/// Returns a name for a device whose process name does not contain its label: the label, and the process that launched
/// its work.
fn device_name(events: &TraceEvents<'_>, number: usize) -> Option<String> {
    let devices = events.devices();
    let label = devices.label(number)?;
    let host = devices.host(number);
    let name = events.processes()[host].report.name.as_deref();
    let is_device = devices.device(number) == Some(number);
    is_device.then(|| name.map_or(label.to_owned(), |name| format!("{label} · {name}")))
}

/// Returns how a process was killed, from the label that a merge wrote into the trace: `killed`, or `killed by
/// SIGKILL`.
fn killed_label(process: &TraceProcess<'_>) -> Option<Option<Exit>> {
    let mut labels = process.labels?.split(',').map(str::trim);
    let killed = labels.find_map(|label| label.strip_prefix("killed"))?;
    let signal = killed.strip_prefix(" by ");
    Some(signal.map(|signal| Exit::Signal(signal.to_owned())))
}

/// Returns further reasons to read the figures with care.
fn cautions(report: &Report) -> Vec<String> {
    let mut words = Vec::new();
    if report.rows.overlapping_spans_left > 0 {
        let spans = report.rows.overlapping_spans_left;
        words.push(match spans {
            1 => "1 span overlaps others on its track, so self times there are bounds".to_owned(),
            _ => format!(
                "{spans} spans overlap others on their track, so self times there are bounds"
            ),
        });
    }
    if let Some(why) = &report.rows.failed {
        words.push(format!(
            "overlapping spans were not moved to tracks of their own: {why}"
        ));
    }
    for process in &report.processes {
        if let Some(trace) = &process.aside_for {
            let name = process.name.as_deref().unwrap_or("a device");
            words.push(format!(
                "{name} is sampled, and counts only where {trace} has no kernels of the same device"
            ));
        }
    }
    words
}
