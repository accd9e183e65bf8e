//! Finds devices and engines that have more work than the others, or that are late.

use super::draft;
use crate::table::{CostOf, DeviceTime, Finding, RunReport, SeriesKind};
use std::collections::BTreeMap;

/// Minimum shares of the devices' time. docs/time.md explains where each comes from.
const EXPOSED_COMMUNICATION: f64 = 0.10;
const LATE: f64 = 0.02;
const UNEVEN: f64 = 0.05;
/// Minimum share of the collectives that a rank joins last.
const LAST: f64 = 0.60;
/// Minimum share of requests by which one engine has fewer than another.
const UNEVEN_ENGINES: f64 = 0.20;

/// Reports communication that did not overlap with computation.
pub(super) fn communication(report: &RunReport) -> Option<Finding> {
    let sum = |time: fn(&DeviceTime) -> i64| -> f64 {
        report.device.iter().map(|device| time(device) as f64).sum()
    };
    let wall_ns = sum(|device| device.wall_ns);
    let cost = sum(|device| device.exposed_communication_ns) / wall_ns.max(1.0);
    (cost >= EXPOSED_COMMUNICATION).then(|| draft("exposed_communication", "devices communicated without computing anything at the same time".to_owned(), (cost, CostOf::DeviceTime), "overlap of communication and computing, a smaller parallel group, a slow rank that others wait for"))
}

/// Reports a rank that is the last to join most collectives.
pub(super) fn late_rank(report: &RunReport) -> Option<Finding> {
    let rank = report.rank.iter().max_by_key(|rank| rank.late_ns)?;
    let mut devices = report.device.iter();
    let device = devices.find(|device| device.process == rank.process)?;
    // The devices that waited may have been recorded for longer, so the share is limited to 1.
    let cost = (rank.late_ns as f64 / device.wall_ns.max(1) as f64).min(1.0);
    let last = rank.last as f64 / rank.collectives.max(1) as f64;
    (last >= LAST && cost >= LATE).then(|| {
        draft(
            "late_rank",
            format!(
                "{} started {} of {} collectives last, and the others waited in them{}",
                report.process_name(rank.process),
                rank.last,
                rank.collectives,
                clock_words(rank.uncertainty_ns)
            ),
            (cost, CostOf::DeviceTime),
            "look at its worker's cores, its share of the work, its device's frequency and temperature",
        )
    })
}

/// Returns a remark on the uncertainty of clocks, which is empty if only one clock is compared.
pub(super) fn clock_words(uncertainty_ns: Option<u64>) -> String {
    match uncertainty_ns {
        Some(0) => String::new(),
        Some(ns) => format!(" (their clocks may be {:.3} ms off)", ns as f64 / 1e6),
        None => " (their clocks may be off by any amount)".to_owned(),
    }
}

/// Reports devices of one engine whose amounts of work differ.
pub(super) fn uneven_devices(report: &RunReport) -> Option<Finding> {
    let mut engines: BTreeMap<usize, Vec<&DeviceTime>> = BTreeMap::new();
    for (device, idle) in report.device.iter().zip(&report.idle) {
        if let Some(engine) = idle.engine {
            engines.entry(engine).or_default().push(device);
        }
    }
    let spread = |devices: &Vec<&DeviceTime>| {
        let most = devices.iter().max_by_key(|device| device.busy_ns)?;
        let least = devices.iter().min_by_key(|device| device.busy_ns)?;
        let wall_ns = most.wall_ns.max(least.wall_ns).max(1) as f64;
        let cost = (most.busy_ns - least.busy_ns) as f64 / wall_ns;
        Some((cost, most.process, least.process))
    };
    let spreads = engines.values().filter_map(spread);
    let (cost, most, least) = spreads.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (cost > UNEVEN).then(|| {
        draft(
            "uneven_devices",
            format!(
                "{} was clearly busier than {}",
                report.process_name(most),
                report.process_name(least)
            ),
            (cost, CostOf::DeviceTime),
            "look at how the model or its experts are split over the devices",
        )
    })
}

/// Reports engines whose numbers of requests differ.
pub(super) fn uneven_engines(report: &RunReport) -> Option<Finding> {
    let mut loads: BTreeMap<usize, f64> = BTreeMap::new();
    for level in &report.load {
        let is_load = matches!(level.of, SeriesKind::Running | SeriesKind::Waiting);
        if let Some(engine) = level.process.filter(|_| is_load) {
            // An engine's load is known only while it has steps. For the rest of the run it is taken as 0.
            let share = level.wall_ns as f64 / report.serving.wall_ns.max(1) as f64;
            *loads.entry(engine).or_default() += level.mean * share;
        }
    }
    let by_load = |one: &(&usize, &f64), other: &(&usize, &f64)| one.1.total_cmp(other.1);
    let (most, least) = (loads.iter().max_by(by_load)?, loads.iter().min_by(by_load)?);
    let fewer = (most.1 - least.1) / most.1.max(f64::MIN_POSITIVE);
    // The cost is the share of requests that would have to move for all engines to have the same number.
    let all: f64 = loads.values().sum();
    let mean = all / loads.len() as f64;
    let over: f64 = loads.values().map(|load| (load - mean).max(0.0)).sum();
    let cost = over / all.max(f64::MIN_POSITIVE);
    (fewer > UNEVEN_ENGINES && *most.1 >= 1.0).then(|| {
        draft(
            "uneven_engines",
            format!(
                "{} had {:.1} requests on average, {} had {:.1}",
                report.process_name(*most.0),
                most.1,
                report.process_name(*least.0),
                least.1
            ),
            (cost, CostOf::Requests),
            "distribute requests over the engines by load instead of in turn",
        )
    })
}
