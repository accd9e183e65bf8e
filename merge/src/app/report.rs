//! The report of a merge, for people and for programs.

pub(crate) mod other_data;
pub(crate) mod processes;
pub(crate) mod sources;
mod text;

pub(crate) use text::printable;

use crate::app::losses::report::LossReport;
use crate::base::number::is_zero;
use crate::clock::placement::Placement;
use crate::event::damage::{Damage, Kind, LISTED, Places, path_text};
use crate::event::mend::Repairs;
use crate::foreign::ForeignReport;
use crate::fragment::exit::{DeadProcess, Death, Deaths, Exit};
use crate::fragment::input::LeftOut;
use crate::lanes::assign::RowTotals;
use crate::link::{LinkReport, LinkedEvents};
use crate::select::filter::FilterReport;
use crate::select::window::WindowReport;
use crate::write::split::OutputReport;
use sa_format::RemovedRuns;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Not;
use std::path::{Path, PathBuf};

/// Report on one fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputReport {
    /// Path of the fragment.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// Run id, if it has a header.
    pub run: Option<String>,
    /// Process id in its header.
    pub pid: Option<u32>,
    /// Number of events from the file.
    pub events: u64,
    /// Number of events from its ring, including unfinished spans.
    pub ring_events: u64,
    /// Number of damaged places in the file and its ring.
    pub damage: u64,
    /// True if the merge appended the contents of the ring and removed the ring.
    pub settled: bool,
}

/// Report on one process of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// Name that is shown.
    pub name: Option<String>,
    /// Process id when it was recorded.
    pub pid: i64,
    /// Process id in the trace.
    pub output_pid: u32,
    /// Host, if a header names it.
    pub host: Option<String>,
    /// True if it is the main process of its run.
    pub main: bool,
    /// How it ended, unless it recorded its end: `killed` if it died with open spans; `silent` if
    /// no span was open, as after `_exit` or a signal between two spans. Absent if it ended
    /// normally, still runs, or if the end is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<&'static str>,
    /// Exit status, if the program that waited for it saw it and `end` is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// True if this is the trace of a snapshot, and the process was running when it was taken.
    #[serde(skip_serializing_if = "Not::not")]
    pub was_running: bool,
    /// Number of spans that were open when it was killed.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_spans: u64,
    /// True if it is not a process, but a group of tracks that a process recorded, such as the
    /// streams of a device.
    pub tracks: bool,
    /// Trace of another profiler that has all kernels of this device. The slices here are sampled,
    /// so no sum may count both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside_for: Option<String>,
    /// Number of threads and lanes, or of tracks.
    pub threads: usize,
    /// True if the preload library recorded a launch of it.
    #[serde(skip_serializing_if = "Not::not")]
    pub seen_by_preload: bool,
    /// Sentences about work of the process that the preload library cannot record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_visible: Vec<String>,
    /// Number of events.
    pub events: u64,
    /// Time of the first event in the trace, in ns from the base. Tracks of MSPTI are ignored here
    /// and in `last_ns`, because their clock has no bound.
    pub first_ns: Option<i64>,
    /// End of the last event in the trace, in ns from the base.
    pub last_ns: Option<i64>,
}

impl ProcessReport {
    /// Returns the data about its end, or `None` if it ended normally, still runs, or is a group of
    /// tracks.
    pub fn death(&self) -> Option<Death> {
        self.end.map(|end| Death {
            open_spans: (end != "unknown").then_some(self.open_spans),
            exit: self.exit.clone(),
            last_ns: self.last_ns,
        })
    }
}

/// Numbers of events from the inputs, including metadata and unfinished spans.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventTotals {
    /// Number of all events.
    #[serde(rename = "events_total")]
    pub total: u64,
    /// Number of events of each phase.
    #[serde(rename = "events_by_phase")]
    pub by_phase: BTreeMap<char, u64>,
}

/// Damage of the inputs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DamageReport {
    /// Number of damaged places.
    #[serde(rename = "damage_total")]
    pub total: u64,
    /// Number of places of each kind.
    #[serde(rename = "damage_by_kind")]
    pub by_kind: BTreeMap<&'static str, u64>,
    /// First damaged places.
    #[serde(rename = "damage")]
    pub list: Vec<Damage>,
}

/// Numbers of events that were repaired and are in the trace.
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
    /// Number of lost events: as reported by the recorders, plus 1 for each gap with an unknown
    /// number of events.
    #[serde(rename = "lost_events")]
    pub events: u64,
    /// Process, time and cause of the 256 largest losses.
    #[serde(rename = "losses", skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<LossReport>,
    /// Number of processes that could not record at all, as reported by their parents.
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
    /// Error of a temporary file that prevented the use of flows for the clocks of hosts.
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
    /// Reports on the traces of other profilers.
    pub foreign: Vec<ForeignReport>,
    /// Runs that were left out.
    pub left_out: Vec<LeftOut>,
    /// Earlier runs of the directories whose fragments were removed to make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_runs: Option<RemovedRuns>,
    /// Events that came from the inputs.
    #[serde(flatten)]
    pub events: EventTotals,
    /// Spans on lanes next to their thread.
    #[serde(flatten)]
    pub rows: RowTotals,
    /// Metadata and flows that the merge added.
    pub events_added: u64,
    /// Damaged places.
    #[serde(flatten)]
    pub damage: DamageReport,
    /// Events that were repaired and are in the trace.
    #[serde(flatten)]
    pub repairs: RepairTotals,
    /// Events and processes that recorders lost.
    #[serde(flatten)]
    pub losses: LossTotals,
    /// Number of spans without an end.
    pub unfinished_spans: u64,
    /// Processes in the order of the trace.
    pub processes: Vec<ProcessReport>,
    /// Time axis of the trace.
    #[serde(flatten)]
    pub clocks: ClocksReport,
    /// The window, if only a part of the run is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowReport>,
    /// Requests that the merge linked, if linking is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkReport>,
    /// Filter, if only some events are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterReport>,
}

impl Report {
    /// Returns true if nothing was damaged or lost.
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

    /// Returns the number of processes, without groups of tracks.
    pub fn process_count(&self) -> usize {
        self.processes
            .iter()
            .filter(|process| !process.tracks)
            .count()
    }
}

impl DamageReport {
    /// Adds a damaged place.
    pub(crate) fn add(&mut self, file: &Path, offset: u64, kind: Kind, detail: Option<String>) {
        self.total += 1;
        *self.by_kind.entry(kind.name()).or_default() += 1;
        self.list(file, offset, kind, detail);
    }

    /// Adds the damaged places of one source. `offset` converts their positions to offsets in the
    /// file.
    pub(crate) fn add_places(&mut self, file: &Path, places: &Places, offset: impl Fn(u64) -> u64) {
        self.total += places.total();
        for (kind, count) in &places.totals {
            *self.by_kind.entry(kind.name()).or_default() += count;
        }
        for (at, kind) in &places.listed {
            self.list(file, offset(*at), *kind, None);
        }
    }

    /// Lists a place while there is room. A changed file is always listed, because its other damage
    /// may come from the change.
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
}

impl RepairTotals {
    /// Adds the repairs of one source.
    pub(crate) fn add(&mut self, repairs: &Repairs) {
        for (kind, count) in repairs.iter() {
            self.total += count;
            *self.by_kind.entry(kind.name()).or_default() += count;
        }
    }
}
