//! The report as text for a terminal.

use super::{DamageReport, Report};
use crate::base::plural::plural;
use crate::link::LinkReport;
use crate::select::window::WindowReport;
use crate::write::split::file_name;
use sa_format::{RemovedRun, RemovedRuns, visible};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of losses, and of damaged places, that get a line.
const SHOWN: usize = 20;

impl Report {
    /// Formats the report for a terminal.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        self.add_head(&mut text);
        if let Some(window) = &self.window {
            add_window(window, &mut text);
        }
        if let Some(filter) = &self.filter {
            let events = plural(filter.events_left_out, "event");
            text.line(format!(
                "left out: {events} that do not match {}",
                printable(&filter.options_text())
            ));
        }
        if let Some(links) = &self.links {
            add_links(links, &mut text);
        }
        text.count(self.unfinished_spans, |n| format!("unfinished spans: {n}"));
        self.deaths()
            .lines()
            .iter()
            .for_each(|line| text.line(line));
        text.count(self.losses.events, |n| {
            format!("events lost while recording: {n}")
        });
        for loss in self.losses.list.iter().take(SHOWN) {
            text.line(format!("  {}", loss.text()));
        }
        text.more(self.losses.list.len() as u64);
        for (process, words) in self.not_visible() {
            text.line(format!("reach: {process}: {words}"));
        }
        self.add_overlaps(&mut text);
        self.add_sources(&mut text);
        if self.repairs.total > 0 {
            let (total, kinds) = (self.repairs.total, by_kind(&self.repairs.by_kind));
            text.line(format!(
                "repaired, and in the trace: {} ({kinds})",
                plural(total, "event")
            ));
        }
        self.damage.add_to_text(&mut text);
        text.0
    }

    fn add_overlaps(&self, text: &mut Text) {
        let (spans, tracks) = (self.rows.overlapping_spans, self.rows.added as u64);
        if spans > 0 {
            text.line(format!(
                "overlapping spans, moved to extra tracks next to their thread: {spans} on {}",
                plural(tracks, "track")
            ));
        }
        text.count(self.rows.overlapping_spans_left, |n| {
            format!("spans that viewers drop, because too many overlap on their thread: {n}")
        });
        if let Some(why) = &self.rows.failed {
            text.line(format!(
                "overlapping spans stay on their thread, where viewers drop them, because of an error: {}",
                printable(why)
            ));
        }
    }

    /// Adds traces of other profilers, devices that they duplicate, clocks, and runs that were left
    /// out.
    fn add_sources(&self, text: &mut Text) {
        for foreign in &self.foreign {
            text.line(printable(&foreign.text()));
        }
        for process in &self.processes {
            if let Some(trace) = &process.aside_for {
                let name = printable(process.name.as_deref().unwrap_or_default());
                let trace = printable(trace);
                text.line(format!(
                    "{name}: these launches are sampled; {trace} has all kernels"
                ));
            }
        }
        let placements = self.clocks.placements.iter();
        for clock in placements.filter(|clock| clock.method != "shared") {
            text.line(printable(&clock.text()));
        }
        if let Some(why) = &self.clocks.failed {
            let why = printable(why);
            text.line(format!(
                "flows were not used to align clocks, because of an error: {why}"
            ));
        }
        for left in &self.left_out {
            let run = printable(&left.run);
            let fragments = plural(left.fragments as u64, "fragment");
            text.line(format!(
                "left out: run {run} ({fragments}); see --run, --previous, --all-runs"
            ));
        }
        if let Some(removed) = &self.removed_runs {
            add_removed(removed, text);
        }
    }

    /// Returns what the preload library cannot see: pairs of a process and a sentence.
    pub fn not_visible(&self) -> impl Iterator<Item = (String, String)> {
        self.processes.iter().flat_map(|process| {
            let name = printable(process.name.as_deref().unwrap_or("(no name)"));
            let whose = format!("{name} (pid {})", process.pid);
            let words = process.not_visible.iter();
            words.map(move |words| (whose.clone(), printable(words)))
        })
    }

    /// Adds the path of the trace, its size and its processes.
    fn add_head(&self, text: &mut Text) {
        let path = self.output.path.as_ref();
        let mut output = path.map_or("standard output".into(), |path| {
            printable(&path.to_string_lossy())
        });
        if let [_, .., last] = self.output.parts.as_slice() {
            output += &format!(" to {}", file_name(&last.path));
        }
        text.line(format!(
            "{output}: {} of {} from {}",
            plural(self.events.total, "event"),
            plural(self.process_count() as u64, "process"),
            plural(self.inputs.len() as u64, "fragment")
        ));
        for part in &self.output.parts {
            let words = part.text(self.output.split_bytes.unwrap_or(u64::MAX));
            text.line(format!("  {}", printable(&words)));
        }
        if !self.output.other_parts.is_empty() {
            let others = printable(&self.output.other_parts.join(", "));
            text.line(format!("not parts of this trace: {others}"));
        }
        for process in &self.processes {
            let name = printable(process.name.as_deref().unwrap_or("(no name)"));
            let main = if process.main { " (main)" } else { "" };
            // A negative pid replaces a text, so it means nothing to the user.
            let pid = match process.pid {
                pid @ 0.. => format!("pid {pid}, "),
                _ => String::new(),
            };
            let events = plural(process.events, "event");
            let noun = if process.tracks { "track" } else { "thread" };
            let threads = plural(process.threads as u64, noun);
            let running = match process.was_running {
                true => ", still running at the snapshot",
                false => "",
            };
            text.line(format!("  {name}{main}: {pid}{events}, {threads}{running}"));
        }
    }
}

/// Lines for a terminal.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: impl AsRef<str>) {
        self.0.push_str(line.as_ref());
        self.0.push('\n');
    }

    /// Adds a line for a count of something, if there is any.
    fn count(&mut self, count: u64, words: impl FnOnce(u64) -> String) {
        if count > 0 {
            self.line(words(count));
        }
    }

    /// Adds a line for the rest of a list, if not all entries have lines.
    fn more(&mut self, count: u64) {
        let more = count.saturating_sub(SHOWN as u64);
        if more > 0 {
            self.line(format!("  and {more} more"));
        }
    }
}

fn add_window(window: &WindowReport, text: &mut Text) {
    text.line(format!(
        "left out: {} and {} {}; cut at the edges (sa_cut): {}",
        plural(window.events_left_out, "event"),
        plural(window.segments_left_out, "segment"),
        window.left_out_text(),
        plural(window.spans_cut, "span")
    ));
    if window.bytes_left_out == 0 {
        return;
    }
    let megabytes = window.bytes_left_out / 1_000_000;
    text.line(format!("not read, checked or counted: {megabytes} MB"));
    if let Some(reach) = window.reach_ns.map(Duration::from_nanos) {
        text.line(format!(
            "warning: spans that overlap the window were only searched for up to {reach:?} after it; see --reach"
        ));
    }
    let missing_ns = window.missing_ns.map(i64::unsigned_abs);
    if let Some(missing) = missing_ns.map(Duration::from_nanos) {
        text.line(format!(
            "warning: segments with {missing:?} of the window were not read, because the clock anchors moved the window; merge without a window to see them"
        ));
    }
}

impl DamageReport {
    fn add_to_text(&self, text: &mut Text) {
        if self.total > 0 {
            let kinds = by_kind(&self.by_kind);
            text.line(format!("damage: {} ({kinds})", self.total));
        }
        for damage in self.list.iter().take(SHOWN) {
            let (file, kind) = (damage.file.to_string_lossy(), damage.kind.name());
            let detail = damage.detail.as_ref();
            let detail = detail.map_or(String::new(), |detail| format!(" ({detail})"));
            let (file, offset) = (printable(&file), damage.offset);
            text.line(format!("  {file}:{offset}: {kind}{detail}"));
        }
        text.more(self.total);
    }
}

/// Adds a line for earlier runs that were removed, with the names of the last ones.
fn add_removed(removed: &RemovedRuns, text: &mut Text) {
    const NAMED: usize = 5;
    let count = removed.older_runs.saturating_add(removed.runs.len() as u64);
    let events = removed.runs.iter().map(|run| run.events);
    let events = events.fold(removed.older_events, u64::saturating_add);
    let run = |run: &RemovedRun| {
        let about = if run.estimated { "about " } else { "" };
        let events = plural(run.events, "event");
        format!("{} with {about}{events}", printable(&run.run))
    };
    let named: Vec<String> = removed.runs.iter().rev().take(NAMED).map(run).collect();
    let has_more = count > named.len() as u64;
    text.line(format!(
        "removed to make room: {} with {} ({}{}); set SA_PROFILE_OLD_RUNS to keep more",
        plural(count, "earlier run"),
        plural(events, "event"),
        named.join(", "),
        if has_more { ", …" } else { "" }
    ));
}

fn by_kind(counts: &BTreeMap<&'static str, u64>) -> String {
    let words = counts.iter().map(|(kind, count)| format!("{kind} {count}"));
    words.collect::<Vec<_>>().join(", ")
}

fn add_links(links: &LinkReport, text: &mut Text) {
    if let Some(why) = &links.failed {
        text.line(format!("requests are not linked: {why}"));
    }
    let dropped = links.requests_dropped;
    if dropped > 0 {
        text.line(format!(
            "requests not linked, because --memory is too small: at least {dropped}"
        ));
    }
    text.count(links.events_cut, |n| {
        format!("events with too many request ids, of which some are ignored: {n}")
    });
    let (requests, events) = (links.requests, links.events);
    if requests > 0 {
        text.line(format!(
            "{} linked through {}",
            plural(requests, "request"),
            plural(events, "event")
        ));
    }
    text.count(links.events_joined, |n| {
        format!("steps added to flows of the program: {n}")
    });
    for flows in &links.loose_flows {
        let (name, category) = (printable(&flows.name), printable(&flows.category));
        for (count, what) in [(flows.without_end, "end"), (flows.without_start, "start")] {
            if count > 0 {
                text.line(format!(
                    "flows without {what}: {count} named {name:?} in category {category:?}"
                ));
            }
        }
    }
}

/// Escapes a recorded text, so that the terminal does not interpret any of it.
pub(crate) fn printable(text: &str) -> String {
    visible(text).into_owned()
}
