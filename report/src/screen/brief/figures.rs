//! Lines on requests, load and devices.

use super::super::amount::{counted, duration, grouped, percent};
use super::super::idle::{causes, words};
use super::super::names::process_name;
use super::super::requests::outcomes;
use super::super::width::{LABEL, WIDTH, cut, filled, labelled};
use crate::statistics::quantiles::Quantiles;
use crate::table::{DeviceTime, LoadLevel, RunReport, SeriesKind};

/// Minimum share of a request's part, or of an idle cause, to be shown.
const LEAST_SHARE: f64 = 0.01;
/// Maximum number of idle causes that are shown.
const CAUSES: usize = 3;

/// Returns at most seven lines: the outcomes of the requests, their latencies, and the parts of their time.
pub(super) fn requests(report: &RunReport) -> Vec<String> {
    let summary = &report.requests;
    if summary.n == 0 {
        let why =
            "requests   none: no event has a request_id (docs/time.md lists the events to record)";
        return vec![why.to_owned()];
    }
    let mut lines = vec![cut(&outcomes(summary), WIDTH)];
    if let Some(goodput) = &summary.goodput {
        let rate = goodput.requests_per_s.unwrap_or(0.0);
        lines.push(format!(
            "  goodput: {} ({}) met the objectives, {rate:.1} per second",
            grouped(goodput.requests),
            percent(goodput.requests as f64 / summary.n as f64)
        ));
    }
    let ttft = match summary.ttft.n {
        0 => ("TTFT in the engine", &summary.engine_ttft),
        _ => ("TTFT", &summary.ttft),
    };
    let token = match summary.tpot.n {
        0 => ("ITL", &summary.itl),
        _ => ("TPOT", &summary.tpot),
    };
    let figures = [ttft, token, ("E2E", &summary.e2e)];
    let shown: Vec<_> = figures
        .into_iter()
        .filter(|(_, figures)| figures.n > 0)
        .collect();
    let names = shown.iter().map(|(name, _)| name.len());
    let width = names.max().unwrap_or(0);
    lines.extend(
        shown
            .iter()
            .map(|(name, figures)| format!("  {name:<width$}{}", latency(figures))),
    );
    let parts = &report.request_parts;
    let shares = parts
        .parts
        .iter()
        .map(|part| (&part.name, part.mean_ns / parts.e2e_mean_ns));
    let shares = shares.filter(|(_, share)| *share >= LEAST_SHARE);
    let shares: Vec<String> = shares
        .map(|(name, share)| format!("{name} {}", percent(share)))
        .collect();
    let shares = filled(&shares, " · ", WIDTH - LABEL, 2);
    lines.extend(labelled("  time in", &shares));
    lines
}

/// Formats the percentiles, the maximum and the mean of a latency in one line.
fn latency(figures: &Quantiles) -> String {
    let figures = [
        ("p50", figures.p50_ns),
        ("p90", figures.p90_ns),
        ("p99", figures.p99_ns),
        ("max", figures.max_ns as f64),
        ("mean", figures.mean_ns),
    ];
    let texts = figures.map(|(name, ns)| format!("  {name} {:>8}", duration(ns)));
    texts.concat()
}

/// Returns at most two lines: the numbers of requests in flight, running and queued, and the KV cache use.
pub(super) fn load(report: &RunReport) -> Vec<String> {
    let kinds = [
        ("in flight", SeriesKind::InFlight),
        ("running", SeriesKind::Running),
        ("queued", SeriesKind::Waiting),
        ("KV cache use", SeriesKind::KvUsedPercent),
    ];
    let level = |(name, kind)| {
        let levels: Vec<&LoadLevel> = report
            .load
            .iter()
            .filter(|level| level.of == kind)
            .collect();
        let (digits, unit) = match kind {
            SeriesKind::KvUsedPercent => (1, " %"),
            _ => (0, ""),
        };
        let means = range(levels.iter().map(|level| level.mean), |mean| {
            format!("{mean:.1}")
        })?;
        let max = levels.iter().map(|level| level.max).fold(0.0, f64::max);
        let engines = match levels.len() {
            n if n > 1 && kind == SeriesKind::Running => format!("in {n} engines: "),
            _ => String::new(),
        };
        Some(format!(
            "{engines}{name} mean {means}{unit}, max {max:.digits$}{unit}"
        ))
    };
    let levels: Vec<String> = kinds.into_iter().filter_map(level).collect();
    labelled("load", &filled(&levels, " · ", WIDTH - LABEL, 2))
}

/// Formats the smallest and the largest of some figures, such as `3.0 to 5.0`, with `words` for each of them. Returns
/// `None` if there are no figures.
fn range(figures: impl Iterator<Item = f64>, words: impl Fn(f64) -> String) -> Option<String> {
    let (least, most) = figures.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), figure| (least.min(figure), most.max(figure)),
    );
    let (least, most) = (least <= most).then(|| (words(least), words(most)))?;
    Some(match least == most {
        true => least,
        false => format!("{least} to {most}"),
    })
}

/// Returns at most three lines: how busy devices or workers were, why they were idle, and which one was slow.
pub(super) fn devices(report: &RunReport) -> Vec<String> {
    let busy = |devices: &[DeviceTime]| {
        let timed = devices.iter().filter(|device| device.wall_ns > 0);
        range(
            timed.map(|device| device.busy_ns as f64 / device.wall_ns as f64),
            percent,
        )
    };
    let (devices, workers) = (report.device.len() as u64, report.worker.len() as u64);
    let line = match (busy(&report.device), busy(&report.worker)) {
        (Some(busy), _) => format!(
            "devices    {}, busy for {busy} of {} time{}",
            grouped(devices),
            if devices == 1 { "its" } else { "their" },
            communication(report)
        ),
        (None, Some(busy)) => format!(
            "workers    {}, in a step for {busy} of {} time; no device is recorded",
            grouped(workers),
            if workers == 1 { "its" } else { "their" }
        ),
        (None, None) => return Vec::new(),
    };
    let mut lines = vec![line];
    let idle = causes(&report.idle)
        .into_iter()
        .map(|(cause, _)| (words(cause).0, report.idle_share(cause)));
    let idle = idle.filter(|(_, share)| *share >= LEAST_SHARE).take(CAUSES);
    let idle: Vec<String> = idle
        .map(|(cause, share)| format!("{cause} {}", percent(share)))
        .collect();
    let idle = filled(&idle, " · ", WIDTH - LABEL, 1);
    lines.extend(labelled("  idle", &idle));
    lines.extend(slowest(report).map(|slowest| cut(&format!("  slowest  {slowest}"), WIDTH)));
    lines
}

/// Returns a phrase with the highest share of exposed communication of any device.
fn communication(report: &RunReport) -> String {
    let devices = report.device.iter().filter(|device| device.wall_ns > 0);
    let exposed =
        devices.map(|device| device.exposed_communication_ns as f64 / device.wall_ns as f64);
    match exposed.fold(0.0, f64::max) {
        most if most < LEAST_SHARE => String::new(),
        most => format!(", exposed communication up to {}", percent(most)),
    }
}

/// Returns a phrase on the device that the others waited for most.
fn slowest(report: &RunReport) -> Option<String> {
    let rank = report.rank.iter().max_by_key(|rank| rank.late_ns);
    if let Some(rank) = rank.filter(|rank| rank.late_ns > 0) {
        let last = rank.last as f64 / rank.collectives.max(1) as f64;
        return Some(format!(
            "{} started {} of {} last, {} late in total",
            process_name(report, rank.process),
            percent(last),
            counted(rank.collectives, "collective", "collectives"),
            duration(rank.late_ns as f64)
        ));
    }
    let (device, wait) = report.longest_wait()?;
    // The name of a device often contains a dot, which separates figures here.
    let device_words = match device.process == device.worker {
        true => "",
        false => "the device of ",
    };
    Some(format!(
        "{}: {device_words}{} waited {} for it",
        process_name(report, wait.process),
        process_name(report, device.worker),
        duration(wait.ns as f64)
    ))
}
