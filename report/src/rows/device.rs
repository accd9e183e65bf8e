//! Devices.

use super::column::{FigureColumn, TableRow, count, figure, int, process, real_us, us};
use crate::quantiles::Quantiles;
use crate::table::{DeviceIdle, DeviceTime, RunReport};

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

    /// Returns a figure of the launch delays, if any is known.
    fn delay<T>(&self, get: fn(&Quantiles) -> T) -> Option<T> {
        figure(&self.time.launch_delay, get)
    }
}

impl TableRow for DeviceRow {
    const TABLE: &'static str = "device";
    const COLUMNS: &'static [FigureColumn<DeviceRow>] = &[
        process("process", "upid", |row| Some(row.time.process)),
        int("is_worker", |row| Some(row.time.is_runner.into())),
        process("worker", "worker_upid", |row| row.worker),
        process("engine", "engine_upid", |row| row.engine),
        count("slices", |row| Some(row.time.slices)),
        count("short_slices", |row| Some(row.time.short_slices)),
        int("from_ns", |row| Some(row.time.from_ns)),
        us("wall_us", |row| Some(row.time.wall_ns)),
        us("busy_us", |row| Some(row.time.busy_ns)),
        us("idle_us", |row| Some(row.time.wall_ns - row.time.busy_ns)),
        us("communication_us", |row| Some(row.time.communication_ns)),
        us("exposed_communication_us", |row| {
            Some(row.time.exposed_communication_ns)
        }),
        us("longest_gap_us", |row| Some(row.time.longest_gap_ns)),
        int("longest_gap_at_ns", |row| Some(row.time.longest_gap_at_ns)),
        count("launches", |row| Some(row.time.launch_delay.n)),
        real_us("launch_delay_mean_us", |row| row.delay(|of| of.mean_ns)),
        real_us("launch_delay_p50_us", |row| row.delay(|of| of.p50_ns)),
        real_us("launch_delay_p90_us", |row| row.delay(|of| of.p90_ns)),
        real_us("launch_delay_p99_us", |row| row.delay(|of| of.p99_ns)),
        us("launch_delay_max_us", |row| row.delay(|of| of.max_ns)),
        count("early_slices", |row| Some(row.time.early_slices)),
        us("early_us", |row| Some(row.time.early_ns)),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.time.process)
    }
}
