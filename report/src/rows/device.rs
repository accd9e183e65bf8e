//! Devices.

use super::column::{FigureColumn, Getter, TableRow, column, count, figure};
use crate::table::device_idle::DeviceIdle;
use crate::table::device_time::DeviceTime;
use crate::table::run_report::RunReport;

/// A device, or a worker whose device is not recorded: how busy it was, and who feeds it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRow {
    time: DeviceTime,
    worker: Option<usize>,
    engine: Option<usize>,
}

impl DeviceRow {
    /// Returns the rows of a report.
    pub fn all(report: &RunReport) -> Vec<DeviceRow> {
        let row = |time: &DeviceTime| {
            let is_its = |idle: &&DeviceIdle| idle.process == time.process;
            let idle = report.idle.iter().find(is_its);
            DeviceRow {
                time: time.clone(),
                worker: idle.map(|idle| idle.worker),
                engine: idle.and_then(|idle| idle.engine),
            }
        };
        report.timed().map(row).collect()
    }
}

impl TableRow for DeviceRow {
    const TABLE: &'static str = "device";
    const COLUMNS: &'static [FigureColumn<DeviceRow>] = &[
        column(
            "process",
            Getter::Process("upid", |row| Some(row.time.process)),
        ),
        column("is_worker", Getter::Int(|row| row.time.is_runner.into())),
        column("worker", Getter::Process("worker_upid", |row| row.worker)),
        column("engine", Getter::Process("engine_upid", |row| row.engine)),
        column("slices", Getter::Int(|row| count(row.time.slices))),
        column(
            "short_slices",
            Getter::Int(|row| count(row.time.short_slices)),
        ),
        column("from_ns", Getter::Int(|row| row.time.from_ns)),
        column("wall_us", Getter::Us(|row| row.time.wall_ns)),
        column("busy_us", Getter::Us(|row| row.time.busy_ns)),
        column(
            "idle_us",
            Getter::Us(|row| row.time.wall_ns - row.time.busy_ns),
        ),
        column(
            "communication_us",
            Getter::Us(|row| row.time.communication_ns),
        ),
        column(
            "exposed_communication_us",
            Getter::Us(|row| row.time.exposed_communication_ns),
        ),
        column("longest_gap_us", Getter::Us(|row| row.time.longest_gap_ns)),
        column(
            "longest_gap_at_ns",
            Getter::Int(|row| row.time.longest_gap_at_ns),
        ),
        column(
            "launches",
            Getter::Int(|row| count(row.time.launch_delay.n)),
        ),
        column(
            "launch_delay_mean_us",
            Getter::OptionalRealUs(|row| figure(&row.time.launch_delay, |of| of.mean_ns)),
        ),
        column(
            "launch_delay_p50_us",
            Getter::OptionalRealUs(|row| figure(&row.time.launch_delay, |of| of.p50_ns)),
        ),
        column(
            "launch_delay_p90_us",
            Getter::OptionalRealUs(|row| figure(&row.time.launch_delay, |of| of.p90_ns)),
        ),
        column(
            "launch_delay_p99_us",
            Getter::OptionalRealUs(|row| figure(&row.time.launch_delay, |of| of.p99_ns)),
        ),
        column(
            "launch_delay_max_us",
            Getter::OptionalUs(|row| figure(&row.time.launch_delay, |of| of.max_ns)),
        ),
        column(
            "early_slices",
            Getter::Int(|row| count(row.time.early_slices)),
        ),
        column("early_us", Getter::Us(|row| row.time.early_ns)),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.time.process)
    }
}
