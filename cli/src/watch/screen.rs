//! Formats the figures of a live run as text.

use crate::words::amount::{aligned, grouped, size};
use crate::words::printable;
use std::fmt::Write;
use trace_report::live::{LiveState, LiveStats, LiveWindow};

/// Maximum number of rows in each table.
const ROWS: usize = 10;
/// Minimum time without an event that is mentioned.
const SILENCE_NS: u64 = 3_000_000_000;
/// Maximum width of a name.
const NAME: usize = 40;

/// Returns the whole screen.
pub(super) fn text(stats: &LiveStats) -> String {
    let mut text = String::new();
    let state = match (stats.state, stats.is_final) {
        (LiveState::Waiting, _) => return "no run has begun yet\n".to_owned(),
        (LiveState::Live, _) => "goes on",
        (LiveState::Ended, _) if stats.recorded.alive > 0 => {
            "was still running when this snapshot was taken"
        }
        (LiveState::Ended, true) => "has ended; these are the figures of its report",
        (LiveState::Ended, false) => "has ended",
    };
    let recorded = &stats.recorded;
    let lost = recorded.lost.values().copied().fold(0, u64::saturating_add);
    let all = recorded.alive + recorded.ended + recorded.died;
    let _ = writeln!(text, "run       {} {state}", printable(&stats.run)); // writing to a string cannot fail
    let _ = writeln!(
        text,
        "recorded  {} events, {} lost, {}; {} of {all} processes alive, {} died",
        grouped(recorded.events),
        grouped(lost),
        size(recorded.bytes),
        recorded.alive,
        recorded.died
    );
    notes(&mut text, stats);
    requests(&mut text, stats);
    engines(&mut text, stats);
    devices(&mut text, stats);
    names(&mut text, stats);
    text
}

/// Returns the figures as one line.
pub(super) fn line(stats: &LiveStats) -> String {
    let silence = silence(stats).map_or(String::new(), |words| format!("{words}; "));
    let (last, requests) = (&stats.last_10_s, &stats.requests);
    let ended = requests.ok + requests.aborted + requests.failed;
    let running: u32 = stats
        .engine
        .iter()
        .filter_map(|engine| engine.running)
        .sum();
    let waiting: u32 = stats
        .engine
        .iter()
        .filter_map(|engine| engine.waiting)
        .sum();
    format!(
        "{silence}{} processes alive, {} events; {} requests ended, {} {}, {running} running, {waiting} waiting; last 10 s: {:.1} requests/s, {:.0} tokens/s, TTFT p50 {} p99 {}, TPOT p50 {}\n",
        stats.recorded.alive,
        grouped(stats.recorded.events),
        grouped(ended),
        grouped(stats.unfinished),
        unfinished_words(stats),
        last.requests_per_s,
        tokens_per_s(last),
        time(last.ttft.p50_ns),
        time(last.ttft.p99_ns),
        time(last.tpot.p50_ns),
    )
}

/// Returns how long there has been no event, if it is longer than recorders may delay an event.
fn silence(stats: &LiveStats) -> Option<String> {
    let ns = stats.no_event_for_ns.filter(|ns| *ns >= SILENCE_NS)?;
    Some(format!("no event for {} s", ns / 1_000_000_000))
}

/// Returns the token rate that the engines report for their steps, or the one from finished requests.
fn tokens_per_s(window: &LiveWindow) -> f64 {
    match window.decode_tokens_per_s > 0.0 {
        true => window.decode_tokens_per_s,
        false => window.output_tokens_per_s,
    }
}

/// Returns the description of requests without an end: in flight, unless the run has ended.
fn unfinished_words(stats: &LiveStats) -> &'static str {
    match stats.state {
        LiveState::Ended => "without an end",
        LiveState::Waiting | LiveState::Live => "in flight",
    }
}

fn notes(text: &mut String, stats: &LiveStats) {
    if let Some(words) = silence(stats) {
        let _ = writeln!(text, "silent    {words}");
    }
    let behind = &stats.behind;
    if behind.behind_ns > 2_000_000_000 {
        let _ = writeln!(
            text,
            "behind    {} and {}",
            time(Some(behind.behind_ns as f64)),
            size(behind.unread_bytes)
        );
    }
    let skipped = behind.damaged_blocks
        + behind.damaged_lines
        + behind.skipped_events
        + behind.skipped_segments
        + behind.unreadable_files
        + behind.out_of_time
        + behind.late_moments;
    if skipped > 0 {
        let _ = writeln!(
            text,
            "skipped   {} pieces that could not be read or came too late",
            grouped(skipped)
        );
    }
    if behind.missing_bytes > 0 {
        let _ = writeln!(
            text,
            "missing   {} of what was recorded",
            size(behind.missing_bytes)
        );
    }
    if let Some(why) = &stats.not_final {
        let _ = writeln!(text, "not final: {}", printable(why));
    }
}

fn requests(text: &mut String, stats: &LiveStats) {
    let (all, last) = (&stats.requests, &stats.last_10_s);
    let mixed = match stats.mixed {
        0 => String::new(),
        mixed => format!(
            ", {} not distinguished: their id was in use",
            grouped(mixed)
        ),
    };
    let _ = writeln!(
        text,
        "requests  {} ok, {} aborted, {} failed, {} {}{mixed}\n",
        grouped(all.ok),
        grouped(all.aborted),
        grouped(all.failed),
        grouped(stats.unfinished),
        unfinished_words(stats)
    );
    let mut rows = vec![row([
        "", "n", "mean", "p50", "p90", "p99", "10 s: n", "p50", "p99",
    ])];
    let figures = [
        ("TTFT", &all.ttft, &last.ttft),
        ("TPOT", &all.tpot, &last.tpot),
        ("ITL", &all.itl, &last.itl),
        ("E2E", &all.e2e, &last.e2e),
        ("queue", &all.queue, &last.queue),
    ];
    for (name, times, window) in figures {
        let quantiles = times.quantiles();
        rows.push(vec![
            name.to_owned(),
            grouped(quantiles.n),
            time(quantiles.mean_ns),
            time(quantiles.p50_ns),
            time(quantiles.p90_ns),
            time(quantiles.p99_ns),
            grouped(window.n),
            time(window.p50_ns),
            time(window.p99_ns),
        ]);
    }
    text.push_str(&aligned(&rows, "", |column| column > 0));
    let whose = match stats.state {
        LiveState::Ended => "before the end, ",
        _ => "",
    };
    let _ = writeln!(
        text,
        "{whose}last 10 s: {:.1} requests/s, {:.0} output tokens/s; last minute: {:.1}, {:.0}\n",
        last.requests_per_s,
        tokens_per_s(last),
        stats.last_60_s.requests_per_s,
        tokens_per_s(&stats.last_60_s)
    );
}

fn engines(text: &mut String, stats: &LiveStats) {
    let mut rows = vec![row([
        "ENGINE",
        "PID",
        "RUNNING",
        "WAITING",
        "KV CACHE USE",
        "STEPS",
        "PREFILL",
        "DECODE",
    ])];
    for engine in stats.engine.iter().take(ROWS) {
        let level =
            |level: Option<u32>| level.map_or("-".to_owned(), |level| grouped(level.into()));
        rows.push(vec![
            name(&engine.name),
            engine.pid.to_string(),
            level(engine.running),
            level(engine.waiting),
            engine.kv_used.map_or("-".to_owned(), percent),
            grouped(engine.steps),
            grouped(engine.prefill_tokens),
            grouped(engine.decode_tokens),
        ]);
    }
    table_if_any(text, &rows, 1);
}

fn devices(text: &mut String, stats: &LiveStats) {
    let mut rows = vec![row([
        "DEVICE",
        "SLICES",
        "BUSY",
        "LAST 10 s",
        "LAST MINUTE",
    ])];
    for device in stats.device.iter().take(ROWS) {
        rows.push(vec![
            name(&device.name),
            grouped(device.slices),
            time(Some(device.busy_ns as f64)),
            percent(device.busy_10_s),
            percent(device.busy_60_s),
        ]);
    }
    table_if_any(text, &rows, 1);
}

fn names(text: &mut String, stats: &LiveStats) {
    let mut rows = vec![row(["NAME", "CATEGORY", "SLICES", "TOTAL", "MEAN", "MAX"])];
    for slice in stats.names.iter().take(ROWS) {
        rows.push(vec![
            name(&slice.name),
            name(&slice.category),
            grouped(slice.ncall),
            time(Some(slice.total_ns as f64)),
            time(Some(slice.total_ns as f64 / slice.ncall.max(1) as f64)),
            time(Some(slice.max_ns as f64)),
        ]);
    }
    table_if_any(text, &rows, 2);
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn table_if_any(text: &mut String, rows: &[Vec<String>], texts: usize) {
    if rows.len() > 1 {
        text.push_str(&aligned(rows, "", |column| column >= texts));
        text.push('\n');
    }
}

fn name(text: &str) -> String {
    let shown = printable(text);
    match shown.chars().count() > NAME {
        true => shown.chars().take(NAME - 1).chain(['…']).collect(),
        false => shown,
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn time(ns: Option<f64>) -> String {
    let Some(ns) = ns else {
        return "-".to_owned();
    };
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
    let unit = units.into_iter().find(|(_, of)| ns.abs() >= *of);
    let (unit, of) = unit.unwrap_or(("ns", 1.0));
    let value = ns / of;
    let digits = if value.abs() < 10.0 {
        2
    } else {
        usize::from(value.abs() < 100.0)
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let texts = [0.0, 999.0, 1_500.0, 12_345_678.0, 250e6, 3e9].map(|ns| time(Some(ns)));
        assert_eq!(
            texts,
            [
                "0.00 ns", "999 ns", "1.50 µs", "12.3 ms", "250 ms", "3.00 s"
            ]
        );
        assert_eq!(time(None), "-");
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(name("a\u{1b}[2J"), "a<U+001B>[2J");
        assert_eq!(name(&"x".repeat(99)).chars().count(), NAME);
    }
}
