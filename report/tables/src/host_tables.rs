//! Writes the tables of which each host has one file: processes, threads, tracks, clocks, losses, damage and metadata.

use crate::folder::{NewTables, Partition};
use crate::gather::lanes::Lanes;
use crate::ids::{HOSTS, HostId, in_process};
use crate::options::TablesOptions;
use crate::process_tables::{LeftOut, TrackRow};
use crate::write::cells::{Cell, Coding, Column};
use crate::write::table::write;
use parquet::errors::Result;
use std::collections::{BTreeMap, BTreeSet};
use trace_merge::events::{TraceEvents, TraceProcess};
use trace_merge::{Exit, LossReport, Report};
use trace_report::Recorded;

/// Version of the tables. It is incremented for each change that a statement can see.
pub(crate) const SCHEMA: i64 = 2;
/// Name of the host of processes without one.
const UNKNOWN: &str = "unknown";

const fn long(name: &'static str) -> Column {
    Column::long(name, Coding::Delta)
}

const PROCESS: [Column; 13] = [
    long("upid"),
    long("pid"),
    Column::text("name").or_null(),
    Column::text("boot_id").or_null(),
    Column::text("labels").or_null(),
    long("is_device"),
    long("device_upid").or_null(),
    long("events").or_null(), // An older version did not have this column.
    long("open_spans").or_null(),
    Column::text("end_state").or_null(),
    Column::text("exit").or_null(),
    long("last_ns").or_null(),
    long("clock_uncertainty_ns").or_null(),
];
const THREAD: [Column; 5] = [
    long("utid"),
    long("tid"),
    long("upid"),
    Column::text("name").or_null(),
    long("is_main_thread"),
];
const TRACK: [Column; 5] = [
    long("id"),
    Column::text("name").or_null(),
    Column::text("kind"),
    long("utid").or_null(),
    long("upid").or_null(),
];
const CLOCK: [Column; 5] = [
    long("host_id"),
    Column::text("boot_id").or_null(),
    long("base_unix_ns").or_null(),
    long("offset_ns"),
    long("uncertainty_ns").or_null(),
];
const LOSS: [Column; 5] = [
    Column::text("cause"),
    long("events"),
    long("upid").or_null(),
    long("ts").or_null(),
    long("dur").or_null(),
];
const DAMAGE: [Column; 4] = [
    Column::text("file").or_null(),
    long("offset").or_null(),
    Column::text("kind"),
    long("count"),
];
const METADATA: [Column; 3] = [
    Column::text("name"),
    Column::text("str_value").or_null(),
    long("int_value").or_null(),
];

/// A host of the trace.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Boot ids of the processes, in the order of the processes. Empty if no process has one.
    pub(crate) boot_ids: Vec<String>,
    pub(crate) id: HostId,
    pub(crate) partition: Partition,
    /// Numbers of the processes.
    pub(crate) processes: Vec<usize>,
}

/// Groups the processes by host. A process without a host belongs to the only named host, or to a host called unknown if there are none or several. All boots
/// of a host share a partition.
pub(crate) fn hosts(
    events: &TraceEvents<'_>,
    options: &TablesOptions,
) -> Result<Vec<Host>, trace_merge::Error> {
    let processes = events.processes();
    let host_name = |process: &TraceProcess<'_>| {
        let host = process.report.host.as_deref();
        host.filter(|host| !host.is_empty()).map(str::to_owned)
    };
    let named: BTreeSet<String> = processes.iter().filter_map(host_name).collect();
    let default = match named.first() {
        Some(only) if named.len() == 1 => only.as_str(),
        _ => UNKNOWN,
    };
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, process) in processes.iter().enumerate() {
        let name = host_name(process).unwrap_or_else(|| default.to_owned());
        by_name.entry(name).or_default().push(number);
    }
    if by_name.is_empty() {
        by_name.insert(UNKNOWN.to_owned(), Vec::new());
    }
    if options.host_id.is_some() && by_name.len() > 1 {
        let names: Vec<String> = by_name.into_keys().collect();
        let why = format!(
            "--host-id: expected a run of one host, found {}",
            names.join(", ")
        );
        return Err(trace_merge::Error::Usage(why));
    }
    let mut ids = BTreeSet::new();
    let host = |(name, numbers): (String, Vec<usize>)| {
        let mut boot_ids: Vec<String> = Vec::new();
        for number in &numbers {
            let boot_id = processes[*number].boot_id.map(str::to_owned);
            if let Some(boot_id) = boot_id.filter(|boot_id| !boot_ids.contains(boot_id)) {
                boot_ids.push(boot_id);
            }
        }
        let first = boot_ids.first().map_or("", String::as_str);
        let hashed = || HostId::hashed(&name, first);
        let mut id = options.host_id.map_or_else(hashed, HostId);
        while !ids.insert(id) {
            id = HostId((id.0 + 1) % HOSTS);
        }
        Host {
            boot_ids,
            id,
            partition: Partition::new(&name),
            name,
            processes: numbers,
        }
    };
    Ok(by_name.into_iter().map(host).collect())
}

/// Data for the tables of all hosts.
pub(crate) struct HostContext<'a> {
    pub(crate) events: &'a TraceEvents<'a>,
    pub(crate) lanes: &'a Lanes,
    /// `upid` of each process.
    pub(crate) upids: &'a [i64],
    /// Tracks of each process.
    pub(crate) tracks: &'a [Vec<TrackRow>],
    pub(crate) left_out: LeftOut,
    pub(crate) new: &'a NewTables,
    pub(crate) recorded: &'a Recorded,
}

impl HostContext<'_> {
    /// Writes the tables of a host. Losses without a process and all damage are in the tables of the first host.
    pub(crate) fn write(&self, host: &Host, is_first: bool) -> Result<()> {
        let path = |table: &str| self.new.file(table, &host.partition, "all");
        let numbers = || host.processes.iter().copied();
        let processes = numbers().map(|number| self.process(number));
        write(&path("process"), &PROCESS, processes)?;
        let threads = numbers().flat_map(|number| self.threads(number));
        write(&path("thread"), &THREAD, threads)?;
        let tracks = numbers().flat_map(|number| self.tracks(number));
        write(&path("track"), &TRACK, tracks)?;
        write(&path("clock"), &CLOCK, self.clocks(host))?;
        let report = self.events.report();
        let is_ours = |loss: &&LossReport| {
            let number = loss.number;
            number.map_or(is_first, |number| host.processes.contains(&number))
        };
        let losses = report.losses.list.iter().filter(is_ours);
        write(&path("loss"), &LOSS, losses.map(|loss| self.loss(loss)))?;
        let damage = if is_first { damage(report) } else { Vec::new() };
        write(&path("damage"), &DAMAGE, damage)?;
        write(&path("metadata"), &METADATA, self.metadata(report))
    }

    fn process(&self, number: usize) -> [Cell<'_>; 13] {
        let process = &self.events.processes()[number];
        let (report, recorded) = (process.report, &self.recorded.processes[number]);
        let uncertainty_ns = recorded.clock_uncertainty_ns;
        [
            Cell::Long(self.upids[number]),
            Cell::Long(report.output_pid.into()),
            report.name.as_deref().into(),
            process.boot_id.into(),
            process.labels.into(),
            Cell::Long(self.events.devices().is_worker(number).into()),
            recorded.device.map(|device| self.upids[device]).into(),
            Cell::Long(recorded.events.cast_signed()),
            Cell::Long(recorded.open_spans.cast_signed()),
            recorded.end.into(),
            recorded.exit.as_ref().map(Exit::text).into(),
            recorded.last_ns.into(),
            uncertainty_ns.map(u64::cast_signed).into(),
        ]
    }

    /// Returns the `utid` of a thread's lane.
    fn utid(&self, process: usize, lane: usize) -> i64 {
        let first = self.lanes.in_process(process).start;
        in_process(self.upids[process], lane - first)
    }

    fn threads(&self, process: usize) -> Vec<[Cell<'_>; 5]> {
        let thread = |number: usize| {
            let lane = self.lanes.lane(number);
            let thread = &self.events.threads()[lane.thread];
            [
                Cell::Long(self.utid(process, number)),
                Cell::Long(lane.tid.into()),
                Cell::Long(self.upids[process]),
                lane.name(thread).into(),
                Cell::Long((thread.is_main && lane.overlapping == 0).into()),
            ]
        };
        self.lanes.in_process(process).map(thread).collect()
    }

    fn tracks(&self, process: usize) -> Vec<[Cell<'_>; 5]> {
        let cells = |track: &TrackRow| {
            let name = track.name.as_ref();
            let name = name.map(|name| String::from_utf8_lossy(name.data()).into_owned());
            let has_upid = !matches!(track.kind, "thread" | "global");
            [
                Cell::Long(track.id),
                name.into(),
                Cell::text(track.kind),
                track
                    .lane
                    .map(|lane| self.utid(process, lane as usize))
                    .into(),
                has_upid.then_some(self.upids[process]).into(),
            ]
        };
        self.tracks[process].iter().map(cells).collect()
    }

    /// Returns a row for each boot of a host, and one if no boot is known.
    fn clocks<'h>(&self, host: &'h Host) -> Vec<[Cell<'h>; 5]> {
        let boot_ids = host.boot_ids.iter().map(|boot_id| Some(boot_id.as_str()));
        let unknown = host.boot_ids.is_empty().then_some(None);
        let rows = boot_ids.chain(unknown);
        rows.map(|boot_id| self.clock(host, boot_id)).collect()
    }

    fn clock<'h>(&self, host: &Host, boot_id: Option<&'h str>) -> [Cell<'h>; 5] {
        let mut clocks = self.events.report().clocks.placements.iter();
        let is_of_boot = |boot: &str| boot_id.is_none_or(|boot_id| boot_id == boot);
        let clock = clocks.find(|clock| clock.host == host.name && is_of_boot(&clock.boot_id));
        let uncertainty_ns = clock.map_or(Some(0), |clock| clock.uncertainty_ns);
        [
            Cell::Long(host.id.0.into()),
            boot_id.into(),
            self.events.base_unix_ns().into(),
            Cell::Long(0),
            uncertainty_ns.and_then(|ns| i64::try_from(ns).ok()).into(),
        ]
    }

    fn loss<'l>(&self, loss: &'l LossReport) -> [Cell<'l>; 5] {
        let dur_ns = loss.from_ns.zip(loss.to_ns).map(|(from, to)| to - from);
        [
            Cell::text(&loss.cause),
            Cell::Long(loss.events.cast_signed()),
            loss.number.map(|number| self.upids[number]).into(),
            loss.from_ns.into(),
            dur_ns.into(),
        ]
    }

    fn metadata<'r>(&self, report: &'r Report) -> Vec<[Cell<'r>; 3]> {
        let long = |name, value: Option<i64>| [Cell::text(name), Cell::Null, value.into()];
        let text = |name, value: Option<&'r str>| [Cell::text(name), value.into(), Cell::Null];
        let count = |name, value: u64| long(name, Some(value.cast_signed()));
        let run = report.inputs.iter().find_map(|input| input.run.as_deref());
        let mut rows = vec![
            long("schema_version", Some(SCHEMA)),
            text("tool_version", Some(env!("CARGO_PKG_VERSION"))),
            text("run", run),
            long("base_ns", Some(report.clocks.base_ns)),
            long("base_unix_ns", self.events.base_unix_ns()),
            count("events", report.events.total),
            count("lost_events", report.losses.events),
            count("damage", report.damage.total),
        ];
        let left = [
            ("overlapping_spans_left", report.rows.overlapping_spans_left),
            ("spans_too_deep", self.left_out.spans_too_deep),
            ("flow_ends_left", self.left_out.flow_ends),
        ];
        let left = left.into_iter().filter(|(_, value)| *value > 0);
        rows.extend(left.map(|(name, value)| count(name, value)));
        rows
    }
}

/// Returns a row for each damaged place that the report lists, and a row for each kind with the number of further places.
fn damage(report: &Report) -> Vec<[Cell<'_>; 4]> {
    let row = |file: Option<String>, offset: Option<i64>, kind, count: u64| {
        let count = Cell::Long(count.cast_signed());
        [file.into(), offset.into(), Cell::text(kind), count]
    };
    let mut more = report.damage.by_kind.clone();
    let mut rows = Vec::new();
    for damage in &report.damage.list {
        let kind = damage.kind.name();
        if let Some(count) = more.get_mut(kind) {
            *count = count.saturating_sub(1);
        }
        let file = damage.file.to_string_lossy().into_owned();
        rows.push(row(Some(file), Some(damage.offset.cast_signed()), kind, 1));
    }
    let more = more.into_iter().filter(|(_, count)| *count > 0);
    rows.extend(more.map(|(kind, count)| row(None, None, kind, count)));
    rows
}
