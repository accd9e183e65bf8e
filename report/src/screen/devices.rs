//! How busy the devices were, and which ones were last to join collectives.

use super::amount::{cells, duration, figures_table, grouped, share};
use super::names::{process_name, shown};
use super::recorded::uncertainty;
use crate::table::{DeviceTime, RunReport, StreamTime};
use std::cmp::Reverse;

/// Maximum number of devices, workers, streams or ranks that are listed.
const LISTED: usize = 16;

/// Writes the tables of devices, of workers without a recorded device, and of streams.
pub(super) fn write(report: &RunReport, out: &mut String) {
    if report.device.is_empty() {
        out.push_str(
            "devices    none recorded: sa-profile run --preload adds the kernels of NPUs\n",
        );
        write_workers(report, out);
        out.push('\n');
        return;
    }
    let (listed, all) = (report.device.len().min(LISTED), report.device.len());
    let mut devices = report.device.iter();
    let communication = match devices.clone().any(|device| device.communication_ns > 0) {
        true => "; exposed: communication while nothing else ran",
        false => "",
    };
    let short = match devices.any(|device| device.short_slices > 0) {
        true => "; short: slices that took less time than the host needed to launch them",
        false => "",
    };
    out.push_str(&format!(
        "devices    {listed} of {all}{communication}{short}\n"
    ));
    let mut rows = vec![cells(
        "|slices|busy|communication|exposed|longest gap|starting at|launch delay|short",
    )];
    for device in report.device.iter().take(LISTED) {
        let wall_ns = device.wall_ns as f64;
        rows.push(vec![
            name(report, device),
            grouped(device.slices),
            share(device.busy_ns as f64, wall_ns),
            share(device.communication_ns as f64, wall_ns),
            share(device.exposed_communication_ns as f64, wall_ns),
            duration(device.longest_gap_ns as f64),
            duration(device.longest_gap_at_ns as f64),
            match device.launch_delay.n {
                0 => String::new(),
                _ => duration(device.launch_delay.p50_ns),
            },
            match device.launch_delay.n {
                0 => String::new(),
                _ => share(device.short_slices as f64, device.slices as f64),
            },
        ]);
    }
    out.push_str(&figures_table(&rows, 1..9));
    write_workers(report, out);
    write_streams(report, out);
    out.push('\n');
}

/// Writes the time of each worker in its steps, for workers whose device is not recorded.
fn write_workers(report: &RunReport, out: &mut String) {
    if report.worker.is_empty() {
        return;
    }
    let (shown, all) = (report.worker.len().min(LISTED), report.worker.len());
    let mut rows = vec![cells("|steps|in steps|longest gap|starting at")];
    rows.extend(report.worker.iter().take(LISTED).map(|worker| {
        vec![
            name(report, worker),
            grouped(worker.slices),
            share(worker.busy_ns as f64, worker.wall_ns as f64),
            duration(worker.longest_gap_ns as f64),
            duration(worker.longest_gap_at_ns as f64),
        ]
    }));
    out.push_str(&format!(
        "  {shown} of {all} workers: the share of their time in a step or in sampling\n"
    ));
    out.push_str(&figures_table(&rows, 1..5));
}

/// Writes the streams with the most time, if a device has several streams, or if a stream has figures that its device
/// lacks.
fn write_streams(report: &RunReport, out: &mut String) {
    let streams = &report.stream;
    let has_queue = streams.iter().any(|stream| stream.mean_queue.is_some());
    let has_replays = streams.iter().any(|stream| stream.replays > 0);
    let devices = report.device.len();
    if streams.len() <= devices && !has_queue && !has_replays {
        return;
    }
    let mut rows = vec![cells("|stream|slices|busy|replays|queue|longest")];
    let mut shown: Vec<&StreamTime> = streams.iter().collect();
    shown.sort_by_key(|stream| Reverse(stream.busy_ns));
    shown.truncate(LISTED);
    shown.sort_by_key(|stream| stream.process);
    rows.extend(shown.iter().map(|stream| stream_row(report, stream)));
    let (listed, all) = (shown.len(), streams.len());
    let queue = match has_queue {
        true => {
            "; queue: mean number of recorded slices that were launched but had not started; longest: their maximum"
        }
        false => "",
    };
    out.push_str(&format!("  {listed} of {all} streams{queue}\n"));
    out.push_str(&figures_table(&rows, 2..7));
}

/// Returns the cells of one row in the table of streams (tracks of a device).
fn stream_row(report: &RunReport, stream: &StreamTime) -> Vec<String> {
    let mut devices = report.device.iter();
    let device = devices.find(|device| device.process == stream.process);
    let wall_ns = device.map_or(0.0, |device| device.wall_ns as f64);
    let mean_queue = stream.mean_queue.map(|mean| format!("{mean:.1}"));
    vec![
        process_name(report, stream.process),
        shown(&stream.name),
        grouped(stream.slices),
        share(stream.busy_ns as f64, wall_ns),
        grouped(stream.replays),
        mean_queue.unwrap_or_default(),
        stream.max_queue.map(grouped).unwrap_or_default(),
    ]
}

/// Returns the name of a device or a worker for a terminal.
fn name(report: &RunReport, device: &DeviceTime) -> String {
    process_name(report, device.process)
}

/// Writes the table of ranks: how often each device was the last to join a collective, and how long it waited in them.
pub(super) fn write_ranks(report: &RunReport, out: &mut String) {
    if report.rank.is_empty() {
        return;
    }
    let n = report.rank.len();
    let mut ranks = report.rank.iter();
    let is_uncertain = ranks.any(|rank| rank.uncertainty_ns != Some(0));
    let clocks = match is_uncertain {
        true => "; undecided: the clocks are not accurate enough",
        false => "",
    };
    out.push_str(&format!(
        "ranks      {} of {n}; last: started the collective last; late by: delay that it alone caused; waited: for others{clocks}\n",
        n.min(LISTED)
    ));
    let mut rows = vec![cells(
        "|collectives|last|outlier|late by|waited|undecided|clocks",
    )];
    for rank in report.rank.iter().take(LISTED) {
        rows.push(vec![
            process_name(report, rank.process),
            grouped(rank.collectives),
            share(rank.last as f64, rank.collectives as f64),
            share(rank.outlier as f64, rank.collectives as f64),
            duration(rank.late_ns as f64),
            duration(rank.waited_ns as f64),
            share(rank.undecided as f64, rank.collectives as f64),
            uncertainty(rank.uncertainty_ns),
        ]);
    }
    out.push_str(&figures_table(&rows, 1..8));
    out.push('\n');
}
