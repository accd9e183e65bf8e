//! The screen of one step.

use super::{cause, cells, fitting, ns, open_line, percent, short, table};
use crate::screen::amount::{counted, duration, grouped};
use crate::table::{BatchOfStep, DeviceInStep, OneStep, ProcessInStep};

/// Maximum number of processes, and of devices, that are shown.
const SHOWN: usize = 8;
/// Maximum width of names and of causes, in columns.
const NAMES: usize = 56;
/// Minimum duration of a slow step, as a multiple of the median.
const SLOW: f64 = 1.5;

/// Returns the screen of one step: its batch, and what each process and device did in it.
pub(super) fn text(detail: &OneStep, run: &str) -> String {
    let mut out = head(detail);
    out.push('\n');
    out.push_str(&processes(detail));
    if !detail.devices.is_empty() {
        out.push('\n');
        out.push_str(&devices(&detail.devices));
    }
    out.push('\n');
    out.push_str(&waits(&detail.processes));
    out.push_str(&neighbours(detail));
    out.push('\n');
    out.push_str(&open_line(run, detail.place));
    out
}

fn head(detail: &OneStep) -> String {
    let dur_ns = detail.place.dur_ns as f64;
    let times = dur_ns / detail.median_ns.max(1.0);
    let how = match times {
        slow if slow >= SLOW => format!("slow: {slow:.1} times the median"),
        fast if fast <= 1.0 / SLOW => "faster than the median".to_owned(),
        _ => "about the median".to_owned(),
    };
    let mut out = format!(
        "step         {}: {} at {}, {how} of {}\n",
        detail.step,
        duration(dur_ns),
        ns(detail.place.from_ns),
        duration(detail.median_ns)
    );
    for (name, place) in detail.others.iter().take(2) {
        out.push_str(&format!(
            "             {} has another step {}: {} at {}\n",
            short(name, 24),
            detail.step,
            ns(place.dur_ns),
            ns(place.from_ns)
        ));
    }
    let batch = batch(&detail.batch);
    if !batch.is_empty() {
        out.push_str(&format!("batch        {batch}\n"));
    }
    out
}

/// Returns words for the requests and tokens in a batch, for prefill and decode.
fn batch(batch: &BatchOfStep) -> String {
    let tokens = |n: Option<u64>| {
        n.map_or_else(String::new, |n| {
            format!(" ({})", counted(n, "token", "tokens"))
        })
    };
    let kind = |word: &str, requests: Option<u64>, batch: Option<u64>| match (requests, batch) {
        (None, None) => None,
        (Some(requests), n) => Some(format!("{} {word}{}", grouped(requests), tokens(n))),
        (None, Some(n)) => Some(format!("{word} {}", counted(n, "token", "tokens"))),
    };
    let parts = [
        batch.requests.map(|n| counted(n, "request", "requests")),
        kind("prefill", batch.prefill_requests, batch.prefill_tokens),
        kind("decode", batch.decode_requests, batch.decode_tokens),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn processes(detail: &OneStep) -> String {
    let mut rows = vec![cells("process|start|took|median|most self time")];
    for part in detail.processes.iter().take(SHOWN) {
        let names = part.inside.iter();
        let names = names.map(|name| format!("{} {}", short(&name.name, 28), ns(name.tsub_ns)));
        let took = match part.is_open {
            true => format!("{}, no end", ns(part.dur_ns)),
            false => ns(part.dur_ns),
        };
        rows.push(vec![
            short(&part.name, 18),
            format!("+{}", ns(part.start_ns - detail.place.from_ns)),
            took,
            part.median_ns.map_or_else(|| "–".to_owned(), duration),
            fitting(names, ", ", NAMES),
        ]);
    }
    table(&rows, 1..4) + &more(detail.processes.len(), "process", "processes")
}

/// Returns a line that says how many of `n` rows a table leaves out. It is empty if all rows are shown.
fn more(n: usize, one: &str, many: &str) -> String {
    match n.saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(
            "  and {} more: --json lists them\n",
            counted(more as u64, one, many)
        ),
    }
}

fn devices(devices: &[DeviceInStep]) -> String {
    let mut rows = vec![cells("device|busy|idle|causes")];
    for device in devices.iter().take(SHOWN) {
        let wall_ns = (device.busy_ns + device.idle_ns).max(1) as f64;
        let causes = device.causes.iter();
        let causes = causes.map(|time| format!("{} {}", cause(time.cause), ns(time.ns)));
        rows.push(vec![
            short(&device.name, 32),
            percent(device.busy_ns as f64 / wall_ns),
            ns(device.idle_ns),
            fitting(causes, ", ", NAMES),
        ]);
    }
    table(&rows, 1..3) + &more(devices.len(), "device", "devices")
}

/// Returns a line on the worker that finished last, and how long the others waited for it.
fn waits(processes: &[ProcessInStep]) -> String {
    let workers = || processes.iter().filter(|part| part.is_worker);
    let end_ns = |part: &&ProcessInStep| part.start_ns + part.dur_ns;
    let open = workers().find(|part| part.is_open);
    let (Some(first), Some(last)) = (workers().min_by_key(end_ns), workers().max_by_key(end_ns))
    else {
        return String::new();
    };
    if let Some(open) = open {
        let name = short(&open.name, 24);
        return format!("waited for   {name}, whose step has no end\n");
    }
    let late_ns = end_ns(&last) - end_ns(&first);
    let begins = workers().map(|part| part.start_ns);
    let began_late_ns = last.start_ns - begins.min().unwrap_or(last.start_ns);
    match late_ns {
        0 => String::new(),
        _ => format!(
            "waited for   {}: it ended {} after {}, and started {} after the first\n",
            short(&last.name, 24),
            ns(late_ns),
            short(&first.name, 24),
            ns(began_late_ns)
        ),
    }
}

fn neighbours(detail: &OneStep) -> String {
    let steps = detail.neighbours.iter();
    let steps: Vec<String> = steps
        .map(|(number, place)| format!("{number}: {}", ns(place.dur_ns)))
        .collect();
    match steps.is_empty() {
        true => String::new(),
        false => format!("neighbours   {}\n", steps.join(", ")),
    }
}
