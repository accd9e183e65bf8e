//! What a merge did, for people and for machines.

pub(crate) mod other_data;
pub(crate) mod processes;
pub(crate) mod sources;

use crate::app::losses::report::LossReport;
use crate::clock::placement::Placement;
use crate::event::damage::{Damage, Kind, LISTED, Places, path_text};
use crate::event::mend::Repairs;
use crate::foreign::ForeignReport;
use crate::fragment::exit::{DeadProcess, Death, Deaths, Exit};
use crate::fragment::input::LeftOut;
use crate::link::{LinkReport, LinkedEvents};
use crate::select::filter::FilterReport;
use crate::select::window::WindowReport;
use crate::write::split::report::{OutputReport, file_name};
use sa_format::{RemovedRun, RemovedRuns, visible};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Not;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Losses and damaged places that have a line.
const SHOWN: usize = 20;

/// One fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputReport {
    /// Its path.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Run id, if it has a header.
    pub run: Option<String>,
    /// Process id in its header.
    pub pid: Option<u32>,
    /// Events taken from the file.
    pub events: u64,
    /// Events taken from its ring, unfinished spans included.
    pub ring_events: u64,
    /// Damaged places in the file and its ring.
    pub damage: u64,
    /// Whether the merge appended what the ring held and removed the ring.
    pub settled: bool,
}

/// One process of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// The name shown.
    pub name: Option<String>,
    /// The process id it had.
    pub pid: i64,
    /// The process id in the trace.
    pub output_pid: u32,
    /// Host, if a header names it.
    pub host: Option<String>,
    /// Whether it is its run's main process.
    pub main: bool,
    /// How it ended, if it did not say so: `killed` where spans were open, which it died in; `silent` where none was, as after `_exit` or a signal between two spans. Absent for one
    /// that ended as it should, still runs, or of which nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<&'static str>,
    /// How it ended, where the program that waited for it saw that, and `end` is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// True if this is the trace of a snapshot, and the process was running when it was taken.
    #[serde(skip_serializing_if = "Not::not")]
    pub was_running: bool,
    /// The spans it was killed in.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_spans: u64,
    /// Whether it is no process, but a group of tracks that one recorded, such as the streams of a device.
    pub tracks: bool,
    /// The other profiler's trace that has all kernels of this device: the slices here are sampled, and no sum may count both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside_for: Option<String>,
    /// Threads and lanes, or tracks.
    pub threads: usize,
    /// Whether the preload library recorded a launch of it.
    #[serde(skip_serializing_if = "Not::not")]
    pub seen_by_preload: bool,
    /// What the preload library does not see of it, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_visible: Vec<String>,
    /// Events.
    pub events: u64,
    /// Time of the first event in the trace, in ns from the base.
    pub first_ns: Option<i64>,
    /// End of the last event in the trace, in ns from the base.
    pub last_ns: Option<i64>,
}

impl ProcessReport {
    /// The known facts about its end; `None` if it ended as it should, still runs, or is a group of tracks.
    pub fn death(&self) -> Option<Death> {
        self.end.map(|end| Death {
            open_spans: (end != "unknown").then_some(self.open_spans),
            exit: self.exit.clone(),
            last_ns: self.last_ns,
        })
    }
}

/// Numbers of events that came from the inputs, metadata and unfinished spans included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventTotals {
    /// Number of all events.
    #[serde(rename = "events_total")]
    pub total: u64,
    /// Number of events of each phase.
    #[serde(rename = "events_by_phase")]
    pub by_phase: BTreeMap<char, u64>,
}

/// Numbers of spans that overlap others of their thread without nesting, so that viewers would drop them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowTotals {
    /// Spans on rows next to their thread, including spans in them that do not overlap.
    pub overlapping_spans: u64,
    /// Rows that were added.
    #[serde(rename = "rows_added")]
    pub added: usize,
    /// Spans that stay on their thread, because they overlap more others at once than a thread may have rows. Viewers drop them.
    pub overlapping_spans_left: u64,
    /// Reason why all spans stay on their threads, although some may overlap: there was no room for temporary files.
    #[serde(rename = "rows_failed", skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Damaged places.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DamageReport {
    /// Number of places.
    #[serde(rename = "damage_total")]
    pub total: u64,
    /// Number of places of each kind.
    #[serde(rename = "damage_by_kind")]
    pub by_kind: BTreeMap<&'static str, u64>,
    /// The first places.
    #[serde(rename = "damage")]
    pub list: Vec<Damage>,
}

/// Numbers of events that were mended and are in the trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepairTotals {
    /// Number of all such events.
    #[serde(rename = "repaired_total")]
    pub total: u64,
    /// Number of events of each kind of repair.
    #[serde(rename = "repaired_by_kind")]
    pub by_kind: BTreeMap<&'static str, u64>,
}

/// Events and processes that recorders lost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LossTotals {
    /// Number of events: what the recorders report, and 1 for each gap whose number of events is not known.
    #[serde(rename = "lost_events")]
    pub events: u64,
    /// Process, time and cause of the 256 largest losses.
    #[serde(rename = "losses", skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<LossReport>,
    /// Number of processes that could not record at all, as far as their parents know.
    pub refused_processes: u64,
}

/// Time axis of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClocksReport {
    /// Time that was subtracted from every time, in ns of the reference host's monotonic clock.
    pub base_ns: i64,
    /// Placement of the clock of each boot.
    #[serde(rename = "clocks")]
    pub placements: Vec<Placement>,
    /// Reason why flows between hosts were not used for their clocks: there was no room for temporary files.
    #[serde(rename = "clocks_failed", skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The result of a merge.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Version of this crate.
    pub version: &'static str,
    /// Files of the trace.
    #[serde(flatten)]
    pub output: OutputReport,
    /// The fragments.
    pub inputs: Vec<InputReport>,
    /// Those of them that are traces of other profilers.
    pub foreign: Vec<ForeignReport>,
    /// Runs that were left out.
    pub left_out: Vec<LeftOut>,
    /// Earlier runs of the directories whose fragments were removed to make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_runs: Option<RemovedRuns>,
    /// Events that came from the inputs.
    #[serde(flatten)]
    pub events: EventTotals,
    /// Spans on rows next to their thread.
    #[serde(flatten)]
    pub rows: RowTotals,
    /// Metadata and flows that the merge added.
    pub events_added: u64,
    /// Damaged places.
    #[serde(flatten)]
    pub damage: DamageReport,
    /// Events that were mended and are in the trace.
    #[serde(flatten)]
    pub repairs: RepairTotals,
    /// Events and processes that recorders lost.
    #[serde(flatten)]
    pub losses: LossTotals,
    /// Spans without an end.
    pub unfinished_spans: u64,
    /// The processes in the order of the trace.
    pub processes: Vec<ProcessReport>,
    /// Time axis of the trace.
    #[serde(flatten)]
    pub clocks: ClocksReport,
    /// The window, if only the last part of the run is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowReport>,
    /// The requests that the merge linked, if it was to link any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkReport>,
    /// The filters, if only some events are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterReport>,
}

impl Report {
    /// Tells whether anything was damaged or lost.
    pub fn is_clean(&self) -> bool {
        self.damage.total == 0 && self.losses.events == 0 && self.losses.refused_processes == 0
    }

    /// Counts the flow events that the merge wrote.
    pub(crate) fn add_links(&mut self, events: LinkedEvents) {
        self.events_added += events.linked + events.joined;
        if let Some(links) = &mut self.links {
            links.events += events.linked;
            links.events_joined += events.joined;
        }
    }

    /// Returns the processes that did not close their recordings, by how they ended.
    pub fn deaths(&self) -> Deaths {
        let dead = |process: &ProcessReport| {
            let name = process.name.as_deref().unwrap_or("(no name)");
            Some(DeadProcess {
                name: name.to_owned(),
                pid: process.pid,
                death: process.death()?,
            })
        };
        self.processes.iter().filter_map(dead).collect()
    }

    /// The number of processes, tracks left out.
    pub fn process_count(&self) -> usize {
        self.processes
            .iter()
            .filter(|process| !process.tracks)
            .count()
    }

    /// The report in words, for a terminal.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        self.add_head(&mut text);
        if let Some(window) = &self.window {
            add_window(window, &mut text);
        }
        if let Some(filter) = &self.filter {
            let (events, words) = (filter.events_left_out, filter.words());
            text.line(format!(
                "left out: {events} events by {}",
                printable(&words)
            ));
        }
        if let Some(links) = &self.links {
            add_links(links, &mut text);
        }
        text.count("unfinished spans", self.unfinished_spans);
        self.deaths()
            .lines()
            .iter()
            .for_each(|line| text.line(line));
        text.count("events lost while recording", self.losses.events);
        for loss in self.losses.list.iter().take(SHOWN) {
            text.line(format!("  {}", loss.words()));
        }
        text.more(self.losses.list.len() as u64);
        for (process, words) in self.not_visible() {
            text.line(format!("reach: {process}: {words}"));
        }
        self.add_rows(&mut text);
        self.add_sources(&mut text);
        if self.repairs.total > 0 {
            let (total, kinds) = (self.repairs.total, by_kind(&self.repairs.by_kind));
            text.line(format!(
                "repaired, and in the trace: {total} events ({kinds})"
            ));
        }
        self.damage.add_words(&mut text);
        text.0
    }

    fn add_rows(&self, text: &mut Text) {
        let (spans, rows) = (self.rows.overlapping_spans, self.rows.added);
        if spans > 0 {
            text.line(format!(
                "overlapping spans, moved to rows beside their thread: {spans} on {rows} rows"
            ));
        }
        text.count(
            "spans that viewers drop, for too many others of their thread are open",
            self.rows.overlapping_spans_left,
        );
        if let Some(why) = &self.rows.failed {
            text.line(format!(
                "spans that may overlap others of their thread are left there, and viewers drop those that do: {}",
                printable(why)
            ));
        }
    }

    /// Adds what was read of other profilers, the devices that step aside for it, clocks, and runs that were left out.
    fn add_sources(&self, text: &mut Text) {
        for foreign in &self.foreign {
            text.line(printable(&foreign.words()));
        }
        for process in &self.processes {
            if let Some(trace) = &process.aside_for {
                let name = printable(process.name.as_deref().unwrap_or_default());
                let trace = printable(trace);
                text.line(format!(
                    "{name}: steps aside, for {trace} has all its kernels"
                ));
            }
        }
        let placements = self.clocks.placements.iter();
        for clock in placements.filter(|clock| clock.method != "shared") {
            text.line(printable(&clock.words()));
        }
        if let Some(why) = &self.clocks.failed {
            let why = printable(why);
            text.line(format!("flows tell nothing of the clocks: {why}"));
        }
        for left in &self.left_out {
            let (run, fragments) = (printable(&left.run), left.fragments);
            text.line(format!(
                "left out: run {run} ({fragments} fragments); see --run, --previous, --all-runs"
            ));
        }
        if let Some(removed) = &self.removed_runs {
            add_removed(removed, text);
        }
    }

    /// What the preload library does not see: the process, and a sentence.
    pub fn not_visible(&self) -> impl Iterator<Item = (String, String)> {
        self.processes.iter().flat_map(|process| {
            let name = printable(process.name.as_deref().unwrap_or("(no name)"));
            let whose = format!("{name} (pid {})", process.pid);
            let words = process.not_visible.iter();
            words.map(move |words| (whose.clone(), printable(words)))
        })
    }

    /// Where the trace is, and whose events it has.
    fn add_head(&self, text: &mut Text) {
        let path = self.output.path.as_ref();
        let mut output = path.map_or("standard output".into(), |path| {
            printable(&path.to_string_lossy())
        });
        if let [_, .., last] = self.output.parts.as_slice() {
            output += &format!(" to {}", file_name(&last.path));
        }
        let (events, fragments, processes) =
            (self.events.total, self.inputs.len(), self.process_count());
        text.line(format!(
            "{output}: {events} events of {processes} processes from {fragments} fragments"
        ));
        for part in &self.output.parts {
            let words = part.words(self.output.split_bytes.unwrap_or(u64::MAX));
            text.line(format!("  {}", printable(&words)));
        }
        if !self.output.other_parts.is_empty() {
            let others = printable(&self.output.other_parts.join(", "));
            text.line(format!("not parts of this trace: {others}"));
        }
        for process in &self.processes {
            let name = printable(process.name.as_deref().unwrap_or("(no name)"));
            let main = if process.main { " (main)" } else { "" };
            // A pid that replaces a text says nothing.
            let pid = match process.pid {
                pid @ 0.. => format!("pid {pid}, "),
                _ => String::new(),
            };
            let (events, threads) = (process.events, process.threads);
            let rows = if process.tracks { "tracks" } else { "threads" };
            let running = match process.was_running {
                true => ", still running at the snapshot",
                false => "",
            };
            text.line(format!(
                "  {name}{main}: {pid}{events} events, {threads} {rows}{running}"
            ));
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
    fn count(&mut self, what: &str, count: u64) {
        if count > 0 {
            self.line(format!("{what}: {count}"));
        }
    }

    /// Adds a line for the rest of a list whose first entries have lines.
    fn more(&mut self, count: u64) {
        let more = count.saturating_sub(SHOWN as u64);
        if more > 0 {
            self.line(format!("  and {more} more"));
        }
    }
}

fn add_window(window: &WindowReport, text: &mut Text) {
    text.line(format!(
        "left out: {} events and {} whole segments {}; {} spans reach into it, marked sa_cut",
        window.events_left_out,
        window.segments_left_out,
        window.words(),
        window.spans_cut
    ));
    if window.bytes_left_out == 0 {
        return;
    }
    let megabytes = window.bytes_left_out / 1_000_000;
    text.line(format!("not read, checked or counted: {megabytes} MB"));
    if let Some(reach) = window.reach_ns.map(Duration::from_nanos) {
        text.line(format!(
            "warning: spans that overlap the window were looked for up to {reach:?} after it; see --reach"
        ));
    }
    let missing_ns = window.missing_ns.map(i64::unsigned_abs);
    if let Some(missing) = missing_ns.map(Duration::from_nanos) {
        text.line(format!(
            "warning: {missing:?} of the window are in segments that were not read, because all anchors place it elsewhere than the headers did; merge without a window to see them"
        ));
    }
}

impl DamageReport {
    /// Adds one damaged place.
    pub(crate) fn add(&mut self, file: &Path, offset: u64, kind: Kind, detail: Option<String>) {
        self.total += 1;
        *self.by_kind.entry(kind.name()).or_default() += 1;
        self.list(file, offset, kind, detail);
    }

    /// Adds the places of one source; `offset` tells where in the file they are.
    pub(crate) fn add_places(&mut self, file: &Path, places: &Places, offset: impl Fn(u64) -> u64) {
        self.total += places.total();
        for (kind, count) in &places.totals {
            *self.by_kind.entry(kind.name()).or_default() += count;
        }
        for (at, kind) in &places.listed {
            self.list(file, offset(*at), *kind, None);
        }
    }

    /// Lists a place while there is room. A changed file is always listed, because its other damage may come from the change.
    fn list(&mut self, file: &Path, offset: u64, kind: Kind, detail: Option<String>) {
        if self.list.len() >= LISTED {
            if kind != Kind::Changed {
                return;
            }
            self.list.pop();
        }
        self.list.push(Damage {
            file: file.to_owned(),
            offset,
            kind,
            detail,
        });
    }

    fn add_words(&self, text: &mut Text) {
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

impl RepairTotals {
    /// Adds what was mended.
    pub(crate) fn add(&mut self, repairs: &Repairs) {
        for (kind, count) in repairs.iter() {
            self.total += count;
            *self.by_kind.entry(kind.name()).or_default() += count;
        }
    }
}

/// The earlier runs that are removed, the last ones by name.
fn add_removed(removed: &RemovedRuns, text: &mut Text) {
    const NAMED: usize = 5;
    let count = removed.older_runs.saturating_add(removed.runs.len() as u64);
    let events = removed.runs.iter().map(|run| run.events);
    let events = events.fold(removed.older_events, u64::saturating_add);
    let run = |run: &RemovedRun| {
        let about = if run.estimated { "about " } else { "" };
        format!("{} with {about}{} events", printable(&run.run), run.events)
    };
    let named: Vec<String> = removed.runs.iter().rev().take(NAMED).map(run).collect();
    let has_more = count > named.len() as u64;
    text.line(format!(
        "removed to make room: {count} earlier runs with {events} events ({}{}); SA_PROFILE_OLD_RUNS keeps more",
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
            "requests not linked, for lack of memory (--memory): at least {dropped}"
        ));
    }
    text.count(
        "events with more ids of requests than count",
        links.events_cut,
    );
    let (requests, events) = (links.requests, links.events);
    if requests > 0 {
        text.line(format!(
            "{requests} requests linked through {events} events"
        ));
    }
    text.count("steps added to flows of the program", links.events_joined);
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

/// A recorded text for a terminal, which must not take any of it for a command.
pub(crate) fn printable(text: &str) -> String {
    visible(text).into_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_commands_no_terminal() {
        assert_eq!(printable("wörker-0"), "wörker-0");
        assert_eq!(
            printable("a\u{1b}[2J\n\u{9b}"),
            "a<U+001B>[2J<U+000A><U+009B>"
        );
    }

    #[test]
    fn words_say_what_was_lost() {
        let mut report = Report {
            unfinished_spans: 1,
            ..Report::default()
        };
        (report.events.total, report.losses.events) = (5, 2);
        for offset in 0..25 {
            report
                .damage
                .add(Path::new("f"), offset, Kind::BadJson, None);
        }
        let text = report.text();
        assert!(
            text.contains("damage: 25 (bad_json 25)") && text.contains("and 5 more"),
            "{text}"
        );
        assert!(text.contains("events lost while recording: 2"), "{text}");
        assert!(!report.is_clean());
    }
}
