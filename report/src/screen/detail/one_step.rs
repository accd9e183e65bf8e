//! One step on one screen.

use super::{cause, cells, fitting, ns, open_line, percent, short, table};
use crate::screen::amount::{counted, duration, grouped};
use crate::table::{BatchOfStep, DeviceInStep, OneStep, ProcessInStep};

/// Maximum number of processes and devices that are shown.
const SHOWN: usize = 8;
/// Maximum width of names, and of causes.
const NAMES: usize = 56;
/// Number of medians from which a step is slow.
const SLOW: f64 = 1.5;

pub(super) fn text(of: &OneStep, run: &str) -> String {
    let mut out = head(of);
    out.push('\n');
    out.push_str(&processes(of));
    if !of.devices.is_empty() {
        out.push('\n');
        out.push_str(&devices(&of.devices));
    }
    out.push('\n');
    out.push_str(&waits(&of.processes));
    out.push_str(&neighbours(of));
    out.push('\n');
    out.push_str(&open_line(run, of.place));
    out
}

fn head(of: &OneStep) -> String {
    let dur_ns = of.place.dur_ns as f64;
    let times = dur_ns / of.median_ns.max(1.0);
    let how = match times {
        slow if slow >= SLOW => format!("slow: {slow:.1} times the median"),
        fast if fast <= 1.0 / SLOW => "faster than the median".to_owned(),
        _ => "about the median".to_owned(),
    };
    let mut out = format!(
        "step         {}: {} at {}, {how} of {}\n",
        of.step,
        duration(dur_ns),
        ns(of.place.from_ns),
        duration(of.median_ns)
    );
    for (name, place) in of.others.iter().take(2) {
        out.push_str(&format!(
            "             {} has another step {}: {} at {}\n",
            short(name, 24),
            of.step,
            ns(place.dur_ns),
            ns(place.from_ns)
        ));
    }
    let batch = batch(&of.batch);
    if !batch.is_empty() {
        out.push_str(&format!("batch        {batch}\n"));
    }
    out
}

fn batch(of: &BatchOfStep) -> String {
    let tokens = |n: Option<u64>| {
        n.map_or_else(String::new, |n| {
            format!(" ({})", counted(n, "token", "tokens"))
        })
    };
    let kind = |word: &str, requests: Option<u64>, of: Option<u64>| match (requests, of) {
        (None, None) => None,
        (Some(requests), of) => Some(format!("{} {word}{}", grouped(requests), tokens(of))),
        (None, Some(of)) => Some(format!("{word} {}", counted(of, "token", "tokens"))),
    };
    let parts = [
        of.requests.map(|n| counted(n, "request", "requests")),
        kind("prefill", of.prefill_requests, of.prefill_tokens),
        kind("decode", of.decode_requests, of.decode_tokens),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn processes(of: &OneStep) -> String {
    let mut rows = vec![cells("process|begins|took|median|most self time")];
    for part in of.processes.iter().take(SHOWN) {
        let names = part.inside.iter();
        let names = names.map(|of| format!("{} {}", short(&of.name, 28), ns(of.tsub_ns)));
        let took = match part.is_open {
            true => format!("{}, no end", ns(part.dur_ns)),
            false => ns(part.dur_ns),
        };
        rows.push(vec![
            short(&part.name, 18),
            format!("+{}", ns(part.start_ns - of.place.from_ns)),
            took,
            part.median_ns.map_or_else(|| "–".to_owned(), duration),
            fitting(names, ", ", NAMES),
        ]);
    }
    table(&rows, 1..4) + &more(of.processes.len(), "process", "processes")
}

fn more(n: usize, one: &str, many: &str) -> String {
    match n.saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(
            "  and {} more: --json has them\n",
            counted(more as u64, one, many)
        ),
    }
}

fn devices(devices: &[DeviceInStep]) -> String {
    let mut rows = vec![cells("device|busy|idle|idle for")];
    for of in devices.iter().take(SHOWN) {
        let wall_ns = (of.busy_ns + of.idle_ns).max(1) as f64;
        let causes = of.causes.iter();
        let causes = causes.map(|of| format!("{} {}", cause(of.cause), ns(of.ns)));
        rows.push(vec![
            short(&of.name, 32),
            percent(of.busy_ns as f64 / wall_ns),
            ns(of.idle_ns),
            fitting(causes, ", ", NAMES),
        ]);
    }
    table(&rows, 1..3) + &more(devices.len(), "device", "devices")
}

/// Returns the line on the worker that came last and how long the others waited for it.
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
            "waited for   {}: it ended {} after {}, and began {} after the first\n",
            short(&last.name, 24),
            ns(late_ns),
            short(&first.name, 24),
            ns(began_late_ns)
        ),
    }
}

fn neighbours(of: &OneStep) -> String {
    let steps = of.neighbours.iter();
    let steps: Vec<String> = steps
        .map(|(number, place)| format!("{number}: {}", ns(place.dur_ns)))
        .collect();
    match steps.is_empty() {
        true => String::new(),
        false => format!("neighbours   {}\n", steps.join(", ")),
    }
}
