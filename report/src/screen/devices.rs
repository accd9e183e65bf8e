//! How busy the devices were.

use super::amount::{duration, grouped, share, table};
use crate::table::device_time::DeviceTime;
use crate::table::run_report::RunReport;

/// Devices that are listed; the others are counted.
const LISTED: usize = 16;

pub(super) fn put(report: &RunReport, out: &mut String) {
    if report.device.is_empty() {
        out.push_str(
            "devices    none recorded: sa-profile run --preload adds the kernels of NPUs\n\n",
        );
        return;
    }
    let shown = report.device.len().min(LISTED);
    let of = report.device.len();
    out.push_str(&format!(
        "devices    {shown} of {of}; communication is exposed where nothing else runs; short slices took less time than their launch\n"
    ));
    let head = [
        "",
        "slices",
        "busy",
        "communication",
        "exposed",
        "longest gap",
        "which began at",
        "launch delay",
        "short",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
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
    if report
        .device
        .iter()
        .all(|device| device.launch_delay.n == 0)
    {
        rows.iter_mut().for_each(|row| row.truncate(7));
    }
    out.push_str(&table(&rows, 1..9));
    out.push('\n');
}

/// The name of a device, or of the worker whose steps stand for one.
fn name(report: &RunReport, device: &DeviceTime) -> String {
    let name = super::names::shown(&report.recorded.process_name(device.process));
    match device.is_runner {
        true => format!("{name} (its steps)"),
        false => name,
    }
}
