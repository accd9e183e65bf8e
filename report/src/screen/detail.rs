//! One request, step or moment on one screen of at most 40 lines of at most 100 columns.

mod one_moment;
mod one_request;
mod one_step;

use super::amount::{cells, counted, duration, table};
use super::idle::words;
use super::width::{WIDTH, columns, cut, shortened as short};
use crate::table::{Detail, IdleCause, LoadAt, SpanAt, TraceRange};

/// Start of the line with the command.
const COMMAND: &str = "in Perfetto  ";

/// Returns the screen that explains one request, step or moment. `run` is the argument with which `sa-profile open`
/// shows the run.
pub fn detail_text(detail: &Detail, run: &str) -> String {
    let text = match detail {
        Detail::Request(request) => one_request::text(request, run),
        Detail::Step(step) => one_step::text(step, run),
        Detail::Moment(moment) => one_moment::text(moment, run),
    };
    // A command must not be cut.
    let lines = text.lines().map(|line| match line.starts_with(COMMAND) {
        true => format!("{line}\n"),
        false => cut(line, WIDTH) + "\n",
    });
    lines.collect()
}

/// Joins as many words with `separator` as fit into `most` columns, and adds `…` if some are left out.
fn fitting(words: impl IntoIterator<Item = String>, separator: &str, most: usize) -> String {
    let mut text = String::new();
    for word in words {
        let between = if text.is_empty() { "" } else { separator };
        let width = columns(&text) + between.len() + columns(&word);
        if width > most && !text.is_empty() {
            return text + between + "…";
        }
        text = text + between + &word;
    }
    text
}

fn ns(ns: i64) -> String {
    duration(ns as f64)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn cause(cause: IdleCause) -> &'static str {
    words(cause).0
}

/// Returns the command that shows a time range in Perfetto, with a margin of a tenth on each side.
fn open_line(run: &str, place: TraceRange) -> String {
    let margin_ns = place.dur_ns / 10 + 1_000;
    let from_ns = (place.from_ns - margin_ns).max(1_000);
    let ms = |ns: i64| format!("{}.{:03}ms", ns / 1_000_000, ns / 1_000 % 1_000);
    let dur_ns = place.from_ns + place.dur_ns + margin_ns - from_ns;
    let (at, span) = (ms(from_ns), ms(dur_ns));
    format!("{COMMAND}sa-profile open {run} --at {at} --for {span}\n")
}

/// Describes the load of the server at one time: the requests in flight, and the state of up to two engines.
fn load_words(load: &LoadAt) -> String {
    let mut text = format!(
        "{} in flight",
        counted(load.in_flight as u64, "request", "requests")
    );
    match load.scheduled.map(|scheduled| load.in_flight - scheduled) {
        _ if load.in_flight == 0 => {}
        Some(0) if load.in_flight == 1 => text.push_str(", already scheduled"),
        Some(0) => text.push_str(", all of them scheduled"),
        Some(_) if load.in_flight == 1 => text.push_str(", not yet scheduled"),
        Some(waiting) => text.push_str(&format!(", {waiting} of them not yet scheduled")),
        None => {}
    }
    for engine in load.engines.iter().take(2) {
        let figures = [
            engine.running.map(|n| format!("{n} running")),
            engine.waiting.map(|n| format!("{n} queued")),
            engine
                .kv_percent
                .map(|percent| format!("KV cache use {percent:.1} %")),
        ];
        let figures: Vec<String> = figures.into_iter().flatten().collect();
        text.push_str(&format!(
            "\n             {}: {}",
            short(&engine.name, 24),
            figures.join(", ")
        ));
    }
    text
}

/// Describes an open span: its name, and for how long it had been open at `at_ns`, a time of the trace.
fn span_words(span: &SpanAt, at_ns: i64) -> String {
    let since = ns(at_ns - span.start_ns);
    let elapsed = match span.dur_ns {
        Some(dur_ns) => format!("{since} of {}", ns(dur_ns)),
        None => format!("{since}, and has no end"),
    };
    format!("{} (for {elapsed})", short(&span.name, 32))
}
