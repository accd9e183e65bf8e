//! Why the devices were idle, and what the host did meanwhile.

use super::amount::{cells, duration, figures_table, grouped, share};
use super::names::process_name;
use super::recorded::clock_note;
use crate::table::{Activity, DeviceIdle, IdleCause, RunReport};

/// Returns the name and the description of an idle cause.
pub(crate) fn words(cause: IdleCause) -> (&'static str, &'static str) {
    match cause {
        IdleCause::NotRecorded => ("not recorded", "events were lost"),
        IdleCause::LaunchDelay => ("launch delay", "work was launched, but had not started"),
        IdleCause::Gc => (
            "garbage collection",
            "Python collected garbage in the worker or the engine",
        ),
        IdleCause::KvTransfer => ("KV transfer", "keys and values were being transferred"),
        IdleCause::Preparing => (
            "preparing",
            "the worker prepared the first launch of its step",
        ),
        IdleCause::LaunchGap => ("launch gaps", "the host was late with the next launch"),
        IdleCause::Sampling => ("sampling", "the worker sampled tokens, or copied them back"),
        IdleCause::Worker => ("worker", "the worker had not started the work it had"),
        IdleCause::NoRequest => (
            "no request",
            "no request was in flight, which is no bottleneck",
        ),
        IdleCause::Scheduling => ("scheduling", "the engine chose what runs next"),
        IdleCause::Output => ("output", "the engine processed a step's output"),
        IdleCause::OtherRank => ("other rank", "another worker was still in its step"),
        IdleCause::Ipc => (
            "IPC",
            "the workers were done, but the engine had not noticed",
        ),
        IdleCause::Frontend => ("frontend", "requests had not reached the engine"),
        IdleCause::NotSchedulable => (
            "not schedulable",
            "requests were queued, but none could run",
        ),
        IdleCause::Engine => ("engine", "the engine did something that no span shows"),
        IdleCause::Unknown => ("unknown", "no span explains it"),
    }
}

/// Returns the name of an activity of the host, and where it takes place.
fn activity(activity: Activity) -> (&'static str, &'static str) {
    match activity {
        Activity::Schedule => ("schedule", "in the engine"),
        Activity::Dispatch => (
            "dispatch",
            "in the engine, including its wait for the workers",
        ),
        Activity::Output => ("output", "in the engine"),
        Activity::Step => ("step", "in the worker"),
        Activity::Sample => ("sample", "in the worker, including the copy back"),
        Activity::KvTransfer => ("KV transfer", ""),
        Activity::Gc => ("garbage collection", ""),
        Activity::Batch => ("batch", "on the workers, while the engine continues"),
    }
}

/// Writes the table of idle causes, the longest wait for another worker, and what the host did.
pub(super) fn write(report: &RunReport, out: &mut String) {
    let idle_ns = sum(&report.idle, |device| device.idle_ns);
    if idle_ns == 0 {
        return;
    }
    let n = report.idle.len() as u64;
    let wall_ns: i128 = report.timed().map(|time| i128::from(time.wall_ns)).sum();
    let idle = share(idle_ns as f64, wall_ns as f64);
    let together = report.idle_together;
    let at_once = share(together.idle_ns as f64, together.wall_ns as f64);
    let processes = report.idle.iter().map(|device| device.process);
    let clocks = clock_note(&report.recorded, processes);
    let line = match (report.device.is_empty(), n) {
        (true, 1) => {
            format!("no device is recorded; the worker was outside a step for {idle} of the time")
        }
        (true, _) => format!(
            "no device is recorded; on average, workers were outside a step for {idle} of the time, all of them at once for {at_once}{clocks}"
        ),
        (false, 1) => format!("the device was idle for {idle} of the time"),
        (false, _) => format!(
            "a device was idle for {idle} of the time on average, all of them at once for {at_once}{clocks}"
        ),
    };
    let means = match (report.device.is_empty(), n) {
        (_, 1) => "",
        (true, _) => ", with the mean of all workers",
        (false, _) => ", with the mean of all devices",
    };
    out.push_str(&format!("idle       {line}; by cause{means}:\n"));
    let mut rows = vec![cells("|mean|share||most affected")];
    for (cause, ns) in causes(&report.idle) {
        let (name, meaning) = words(cause);
        rows.push(vec![
            name.to_owned(),
            duration(ns as f64 / n as f64),
            share(ns as f64, idle_ns as f64),
            meaning.to_owned(),
            most(report, cause),
        ]);
    }
    out.push_str(&figures_table(&rows, 1..3));
    write_ranks(report, out);
    write_host(report, n, out);
    out.push('\n');
}

/// Returns the idle causes with their time on all devices together, longest first.
pub(super) fn causes(devices: &[DeviceIdle]) -> Vec<(IdleCause, i128)> {
    let total = |cause| (cause, sum(devices, |device| device.cause_ns(cause)));
    let mut causes: Vec<_> = IdleCause::ALL.into_iter().map(total).collect();
    causes.retain(|(_, ns)| *ns > 0);
    causes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    causes
}

/// Returns the sum of a time in ns over all devices.
fn sum(devices: &[DeviceIdle], ns: impl Fn(&DeviceIdle) -> i64) -> i128 {
    devices.iter().map(|device| i128::from(ns(device))).sum()
}

/// Returns the name and the idle time of the device that was idle longest for a cause. It is empty unless that is
/// clearly more than the mean of all devices.
fn most(report: &RunReport, cause: IdleCause) -> String {
    let most = report.most_idle(cause);
    most.map_or_else(String::new, |device| {
        let name = process_name(report, device.process);
        format!("{name} ({})", duration(device.cause_ns(cause) as f64))
    })
}

/// Writes which worker another worker's device waited for the longest.
fn write_ranks(report: &RunReport, out: &mut String) {
    if let Some((device, wait)) = report.longest_wait() {
        let name = |process| process_name(report, process);
        let processes = [device.worker, wait.process];
        out.push_str(&format!(
            "  {} waited {} for {}{}\n",
            name(device.process),
            duration(wait.ns as f64),
            name(wait.process),
            clock_note(&report.recorded, processes)
        ));
    }
}

/// Writes what the host did, and how much of it the devices waited for.
fn write_host(report: &RunReport, n: u64, out: &mut String) {
    let mut rows = vec![cells("host|calls|total|mean|exposed|hidden|")];
    for kind in Activity::ALL {
        let host = report.idle.iter().flat_map(|device| &device.host);
        let (mut calls, mut total_ns, mut exposed_ns) = (0, 0, 0);
        for host in host.filter(|host| host.activity == kind) {
            calls += host.calls;
            total_ns += i128::from(host.total_ns);
            exposed_ns += i128::from(host.exposed_ns);
        }
        if total_ns == 0 {
            continue;
        }
        let (name, place) = activity(kind);
        let each = |ns: i128| duration(ns as f64 / n as f64);
        rows.push(vec![
            name.to_owned(),
            grouped(calls / n),
            each(total_ns),
            duration(total_ns as f64 / calls.max(1) as f64),
            each(exposed_ns),
            each(total_ns - exposed_ns),
            place.to_owned(),
        ]);
    }
    if rows.len() > 1 {
        out.push_str(&figures_table(&rows, 1..6));
        out.push_str(
            "  exposed: host time in which the device was idle; mean: per call; other figures: means per device\n",
        );
    }
}
