//! Reads a run into a report.

use crate::fold::crashes::crash;
use crate::fold::device_times::{StreamTimes, device_times};
use crate::fold::findings::{findings, unrecognized};
use crate::fold::findings_track::{TraceTimes, TraceView, findings_track};
use crate::fold::gathered::{Gathered, ROW_BYTES, SLICE_BYTES, VALUE_BYTES};
use crate::fold::idle_causes::{Roles, idle_causes};
use crate::fold::launches::{LaunchedSlices, early_words, launches};
use crate::fold::load_levels::{load_levels, with_prompt_steps};
use crate::fold::name_times::NameTimes;
use crate::fold::rank_times::rank_times;
use crate::fold::recorded::{ends, recorded};
use crate::fold::requests::prefixes::{HashedPrompts, prefixes};
use crate::fold::requests::sizings::sizings;
use crate::fold::requests::spikes::spikes;
use crate::fold::requests::summary::{confidences, request_parts, summary};
use crate::fold::requests::{Scheduling, SortedRequests, TokenSink};
use crate::fold::serving::{run_phases, serving_time, whole_time};
use crate::fold::stalls::{LEAST_NS, stalls};
use crate::fold::start_up::start_up;
use crate::fold::steps::{InSteps, steps};
use crate::fold::timeline::{Parts, TimelineFold};
use crate::fold::value_sorter::ValueSorter;
use crate::fold::verdict::verdict;
use crate::gather::chunk_records::{ChunkContext, ChunkRecords};
use crate::gather::device_slice::{CollectiveRecord, DeviceSlice, LaunchEnd};
use crate::gather::edge::{Edge, EdgeKind, number};
use crate::gather::event_times::{EventTimes, RunParts};
use crate::gather::name_keys::NameKey;
use crate::gather::prompt_blocks::{Prompt, PromptBlock};
use crate::gather::slice_record::SliceRecord;
use crate::gather::step_record::StepRecord;
use crate::nest::nest;
use crate::options::ReportOptions;
use crate::rows::RowSink;
use crate::serving_clock::ServingClock;
use crate::stack_tree::StackTree;
use crate::table::{
    DeviceTime, EngineSettings, NameTime, Prefixes, Recorded, RecordedProcess, Request, RunPhase,
    RunReport, ServingTime, SlowStep, StackTime, StartUp, Verdict,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use trace_merge::collective::CollectiveCounts;
use trace_merge::events::{self, Devices, PlacedEvent, TraceEvents, TraceProcess};
use trace_merge::{Error, Options, Progress, Report};
use trace_store::sorter::{Record, Sorted, Sorter};
use xxhash_rust::xxh3::xxh3_64;

/// Version of the `--json` output.
const SCHEMA: u32 = 3;

/// Reads a run, fragments or any Chrome trace, and reports where the time went. Fragments of dead processes are left
/// unchanged, whatever the options say.
///
/// # Errors
/// Returns the errors of [`trace_merge::merge`], and an error if a temporary file cannot be written.
pub fn read(
    options: &Options,
    report_options: &ReportOptions,
    progress: &Progress,
) -> Result<RunReport, Error> {
    let (report, ()) = read_and(options, report_options, progress, |_| Ok(()))?;
    Ok(report)
}

/// Reads a run and reports on it as [`read`] does. Then calls `also` with the events and returns its result with the
/// report.
///
/// # Errors
/// Returns the errors of [`read`] and of `also`.
pub(crate) fn read_and<T>(
    options: &Options,
    report_options: &ReportOptions,
    progress: &Progress,
    also: impl Fn(&TraceEvents<'_>) -> Result<T, Error>,
) -> Result<(RunReport, T), Error> {
    let options = Options {
        settle: false,
        ..options.clone()
    };
    let (found, _) = events::read(&options, progress, |events| {
        let report = fold(events, report_options, Streams::default())?;
        Ok((report, also(events)?))
    })?;
    Ok(found)
}

/// Merges a run as [`trace_merge::merge_with`] does, and reports where the time went in the same pass. The findings
/// become tracks of the trace. If the report fails, for example because a temporary file cannot be written, the trace
/// is written all the same.
///
/// # Errors
/// Returns the errors of [`trace_merge::merge`].
pub fn merge_and_read(
    options: &Options,
    report_options: &ReportOptions,
    progress: &Progress,
) -> Result<(Result<RunReport, Error>, Report), Error> {
    events::merge_and_read(options, progress, |events| {
        let report = fold(events, report_options, Streams::default());
        if let Ok(report) = &report {
            let times = TraceTimes {
                ends_ns: ends(events).unwrap_or_default(),
                base_ns: 0,
            };
            let (_, addition) = findings_track(report, &times);
            events.add(addition);
        }
        Ok(report)
    })
}

/// Reads a merged trace. Returns the part that a viewer should show first, and the lines that add its findings to the
/// trace.
///
/// # Errors
/// Returns the errors of [`read`].
pub fn read_findings(
    trace: PathBuf,
    progress: &Progress,
) -> Result<(TraceView, Vec<String>), Error> {
    let times = |events: &TraceEvents<'_>| {
        Ok(TraceTimes {
            ends_ns: ends(events).unwrap_or_default(),
            base_ns: events.report().clocks.base_ns,
        })
    };
    let (options, few) = (Options::new([trace]), ReportOptions::default());
    let (report, times) = read_and(&options, &few, progress, times)?;
    let (view, addition) = findings_track(&report, &times);
    let processes = report.recorded.processes.iter();
    let pids = processes.filter_map(|process| u32::try_from(process.pid).ok());
    Ok((view, addition.lines(&pids.collect())))
}

/// Receivers of data that a report does not keep, because there may be millions of records.
#[derive(Default)]
pub(crate) struct Streams<'a> {
    /// Receives each time between two tokens of a request.
    pub(crate) on_gap: Option<&'a mut dyn FnMut(i64)>,
    pub(crate) rows: Option<&'a mut dyn RowSink>,
}

/// Reports on events whose spans are matched, and passes the rows that a report does not keep to `rows`. Temporary
/// files are created in the first of `folders` in which that succeeds.
///
/// # Errors
/// Returns an error if a temporary file cannot be written, or if `rows` fails.
pub fn fold_rows(
    events: &TraceEvents<'_>,
    options: &ReportOptions,
    folders: &[PathBuf],
    rows: &mut dyn RowSink,
) -> Result<RunReport, Error> {
    let streams = Streams {
        rows: Some(rows),
        ..Streams::default()
    };
    fold_matched(events, options, folders, streams)
}

/// Reports on the events of a run.
pub(crate) fn fold(
    events: &mut TraceEvents<'_>,
    options: &ReportOptions,
    streams: Streams<'_>,
) -> Result<RunReport, Error> {
    let found = events.report().events.total;
    if let Some(most) = options.most_events.filter(|most| found > *most) {
        let why = format!("expected {most} events at most, found {found}");
        return Err(Error::Usage(why));
    }
    events.match_spans()?;
    fold_matched(events, options, &[std::env::temp_dir()], streams)
}

fn fold_matched(
    events: &TraceEvents<'_>,
    options: &ReportOptions,
    folders: &[PathBuf],
    streams: Streams<'_>,
) -> Result<RunReport, Error> {
    let temporary_error = |source: io::Error| Error::Temporary {
        folder: folders[0].clone(),
        source,
    };
    let devices = events.devices();
    let (first_ns, end_ns) = ends(events).unwrap_or_default();
    let context = ChunkContext {
        parts: RunParts::new(first_ns, end_ns),
        threads: events.threads(),
        names_by: options.names_by,
        devices,
        runs: &runs(events),
    };
    let mut gathered = Gathered::new(folders);
    let add = |records: &mut ChunkRecords, event: &PlacedEvent<'_>| {
        records.add_event(&context, event);
    };
    events.fold(ChunkRecords::default, add, |records| {
        gathered.add_chunk(records).map_err(temporary_error)
    })?;
    let run = Run {
        events,
        devices,
        options,
        folders,
    };
    run.tables(gathered, streams).map_err(temporary_error)
}

/// A run whose events have been gathered.
struct Run<'a> {
    events: &'a TraceEvents<'a>,
    devices: &'a Devices,
    options: &'a ReportOptions,
    /// Folders for data that does not fit into memory.
    folders: &'a [PathBuf],
}

/// The time to report on.
struct Times {
    /// Ends of the trace.
    ends_ns: (i64, i64),
    serving: ServingTime,
    phases: Vec<RunPhase>,
    clock: ServingClock,
}

/// Tables about slices on threads.
struct SliceTables {
    names: Vec<NameTime>,
    stacks: Vec<StackTime>,
    slow_steps: Vec<SlowStep>,
    start_up: StartUp,
}

/// Tables about slices of devices.
struct DeviceTables {
    device: Vec<DeviceTime>,
    streams: StreamTimes,
    collectives: Sorted<CollectiveRecord>,
    counts: CollectiveCounts,
}

impl Run<'_> {
    fn tables(&self, gathered: Gathered<'_>, mut streams: Streams<'_>) -> io::Result<RunReport> {
        let mut recorded = recorded(self.events, self.devices, gathered.unfinished.iter().sum());
        if let Some(rows) = &mut streams.rows {
            rows.begin(&recorded)?;
        }
        let records = gathered.requests.sort()?;
        let times = self.times(&records, &gathered.ready, streams.rows.is_some())?;
        let (clock, end_ns) = (&times.clock, times.ends_ns.1);
        let keys = gathered.keys.into_keys();
        let (sorted, rows) = (gathered.steps.finish()?, streams.rows.as_deref_mut());
        let slow_steps = steps(&sorted, &keys, clock, rows)?;
        let (slices, unfinished) = (gathered.slices.finish()?, &gathered.unfinished);
        let tables = self.slice_tables(&keys, unfinished, slow_steps, &slices, &times)?;
        drop((slices, keys));
        let mut tokens = Tokens::new(&times, streams.on_gap.take());
        let runs = runs(self.events);
        let folded = records.fold(gathered.prompts.len(), &runs, self.sorter(), &mut tokens)?;
        drop(records);
        let requests = summary(&folded, self.options.slo, &times.serving);
        let (request, phases) = (folded.requests, folded.phases);
        recorded.cautions.extend(mixed_ids(folded.mixed));
        let (prompts, blocks) = (&gathered.prompts, gathered.blocks.finish()?);
        let prefixes = self.prefixes(prompts, &blocks, &recorded, &folded.scheduling)?;
        let (on_devices, mut edges) = (gathered.on_devices.finish()?, gathered.edges);
        let on_devices = (&on_devices, &gathered.stepping);
        let devices = self.device_tables(on_devices, gathered.launch_ends, &mut edges, clock)?;
        recorded.cautions.extend(early_words(&devices.device));
        let edges = with_edges(edges, &devices.device, &request, &recorded, clock)?;
        let roles = Roles {
            processes: recorded.processes.len(),
            recorders: self.recorders(&devices.device),
            ids: &gathered.process_ids,
            has_requests: !request.is_empty(),
            recorded: &recorded,
            clock,
        };
        let records = Sorter::in_any(self.folders, ROW_BYTES);
        let idle = idle_causes(&edges, &roles, records, streams.rows)?;
        let last_ns = last_end_ns(&request);
        let load = load_levels(&edges, clock, last_ns);
        let (collectives, counts) = (&devices.collectives, &devices.counts);
        let rank = rank_times(collectives, counts, &idle.devices, &recorded);
        let by_device = devices.device;
        let stream = devices.streams.finish(&by_device, self.events.threads());
        let (worker, device) = by_device.into_iter().partition(|time| time.is_runner);
        let report = RunReport {
            schema: SCHEMA,
            verdict: Verdict::default(),
            start_up: tables.start_up,
            settings: engine_settings(gathered.settings),
            crash: crash(&recorded.processes, gathered.open, is_cut(self.events)),
            rank,
            recorded,
            findings: Vec::new(),
            unrecognized: Vec::new(),
            request_parts: request_parts(&request),
            phases,
            sizing: sizings(&request, self.options.slo),
            prefixes,
            confidence: confidences(&requests),
            requests,
            spikes: spikes(&request, &load, last_ns),
            request,
            load,
            batching: with_prompt_steps(gathered.batchings.finish(), &sorted, &folded.decodings),
            stream,
            device,
            worker,
            idle: idle.devices,
            idle_together: idle.together,
            slow_steps: tables.slow_steps,
            long_gaps: idle.long_gaps,
            timeline: tokens.timeline.finish(&edges, clock, end_ns),
            stacks: tables.stacks,
            names: tables.names,
            run_phases: times.phases,
            serving: times.serving,
            stalls: Vec::new(),
        };
        let report = with_verdict(report, gathered.event_times, (&edges, &sorted));
        Ok(report)
    }

    /// Returns the number of each device and of the process that recorded it.
    fn recorders(&self, devices: &[DeviceTime]) -> Vec<(usize, usize)> {
        let recorder = |time: &DeviceTime| (time.process, self.devices.host(time.process));
        devices.iter().map(recorder).collect()
    }

    /// Returns the time to report on.
    fn times(&self, records: &SortedRequests, ready: &[i64], has_rows: bool) -> io::Result<Times> {
        // Row sinks receive the whole run.
        let is_whole = self.options.whole || has_rows;
        let ends_ns = ends(self.events).unwrap_or_default();
        let found = serving_time(records.in_flight()?, ends_ns);
        let mut ready = ready.to_vec();
        ready.retain(|ns| *ns <= found.from_ns);
        let phases = run_phases(&found, ends_ns, ready.into_iter().max());
        let serving = if is_whole { whole_time(ends_ns) } else { found };
        Ok(Times {
            ends_ns,
            phases,
            clock: ServingClock::new(&serving),
            serving,
        })
    }

    fn prefixes(
        &self,
        prompts: &[Prompt],
        blocks: &Sorted<PromptBlock>,
        recorded: &Recorded,
        scheduling: &Scheduling,
    ) -> io::Result<Prefixes> {
        let hashed = HashedPrompts {
            prompts,
            blocks,
            processes: &recorded.processes,
        };
        prefixes(&hashed, scheduling, self.sorter())
    }

    fn sorter<R: Record>(&self) -> Sorter<'_, R> {
        Sorter::in_any(self.folders, VALUE_BYTES)
    }

    fn slice_tables(
        &self,
        keys: &[NameKey],
        unfinished: &[u64],
        slow_steps: Vec<StepRecord>,
        slices: &Sorted<SliceRecord>,
        times: &Times,
    ) -> io::Result<SliceTables> {
        let is_counted = self.options.concurrency;
        let by_time = is_counted.then(|| Sorter::in_any(self.folders, SLICE_BYTES));
        let mut names = NameTimes::new(keys, unfinished, self.sorter(), by_time);
        let threads = self.events.threads().iter();
        let processes: Vec<usize> = threads.map(|thread| thread.process).collect();
        let mut stacks = StackTree::new(keys, &processes);
        let mut in_steps = InSteps::new(slow_steps);
        nest(slices, &times.clock, &mut stacks, |slice| {
            in_steps.add(&slice);
            names.add(&slice)
        })?;
        Ok(SliceTables {
            names: names.finish()?,
            stacks: stacks.finish(),
            slow_steps: in_steps.finish(keys, &times.clock),
            start_up: start_up(slices, keys, &processes, &times.phases)?,
        })
    }

    /// Numbers the collectives of the whole run, and returns the ones in serving time. All are numbered because a
    /// collective at the edge of serving time may be inside it on one rank and outside on another.
    fn collectives(
        &self,
        slices: &Sorted<DeviceSlice>,
        clock: &ServingClock,
    ) -> io::Result<(CollectiveCounts, Sorted<CollectiveRecord>)> {
        let (mut counts, mut found) = (CollectiveCounts::default(), self.sorter());
        slices.each(|slice| {
            if slice.collective != 0
                && let Some(key) = counts.next(slice.collective, slice.device)
                && clock.clip((slice.start_ns, slice.end_ns.0)).is_some()
            {
                found.push(CollectiveRecord::new(key, &slice))?;
            }
            Ok(())
        })?;
        Ok((counts, found.finish()?))
    }

    /// Computes the report's tables about devices from their slices, and from the processes that run steps. Adds the
    /// edges (start and end) of the devices' idle gaps and an edge for each launch to `edges`.
    fn device_tables(
        &self,
        (slices, stepping): (&Sorted<DeviceSlice>, &BTreeSet<u32>),
        launch_ends: Sorter<'_, LaunchEnd>,
        edges: &mut Sorter<'_, Edge>,
        clock: &ServingClock,
    ) -> io::Result<DeviceTables> {
        let host = |device: u32| number(self.devices.host(device as usize));
        let launches = launches(&launch_ends.finish()?, host, self.sorter(), edges)?;
        let (counts, collectives) = self.collectives(slices, clock)?;
        let mut delays = ValueSorter::new(self.sorter());
        let mut streams = StreamTimes::default();
        let mut device = device_times(
            &LaunchedSlices {
                slices,
                launches: &launches,
                stepping,
            },
            clock,
            |gap| {
                // Launches recorded by sa-profile may be sampled, so the next known launch says little about a gap.
                let is_foreign = self.devices.launch_scope(gap.device as usize).is_some();
                gap.edges(is_foreign).try_for_each(|edge| edges.push(edge))
            },
            |slice| {
                if let Some(queue_ns) = slice.queue_ns() {
                    delays.push(slice.device, queue_ns)?;
                }
                streams.add(slice);
                Ok(())
            },
        )?;
        let delays = delays.finish()?;
        for device in &mut device {
            let delay = delays.get(device.process);
            device.launch_delay = delay.copied().unwrap_or_default();
            device.is_runner = self.devices.device(device.process).is_none();
        }
        device.sort_by_key(|device| device.is_runner);
        Ok(DeviceTables {
            device,
            streams,
            collectives,
            counts,
        })
    }
}

/// Returns the time at which the last request ended, or 0 if none did.
fn last_end_ns(requests: &[Request]) -> i64 {
    let ends = requests.iter().filter_map(|request| request.finished_ns);
    ends.max().unwrap_or(0)
}

/// Receiver of tokens while requests are folded.
struct Tokens<'c, 's> {
    timeline: TimelineFold,
    clock: &'c ServingClock,
    on_gap: Option<&'s mut dyn FnMut(i64)>,
}

impl<'c, 's> Tokens<'c, 's> {
    fn new(times: &'c Times, on_gap: Option<&'s mut dyn FnMut(i64)>) -> Tokens<'c, 's> {
        let ServingTime {
            from_ns, wall_ns, ..
        } = times.serving;
        Tokens {
            timeline: TimelineFold::new(Parts::new(from_ns, from_ns + wall_ns)),
            clock: &times.clock,
            on_gap,
        }
    }
}

impl TokenSink for Tokens<'_, '_> {
    fn tokens(&mut self, ns: i64, tokens: u32) {
        self.timeline.add_tokens(self.clock.serving_ns(ns), tokens);
    }

    fn gap(&mut self, ns: i64) {
        if let Some(on_gap) = &mut self.on_gap {
            on_gap(ns);
        }
    }
}

fn engine_settings(by_process: BTreeMap<usize, BTreeMap<String, Value>>) -> Vec<EngineSettings> {
    let settings = by_process.into_iter();
    let settings = settings.map(|(process, values)| EngineSettings { process, values });
    settings.collect()
}

/// Returns a caution for the reader if some requests started under an id that another request was still using.
/// `mixed` is their number. Returns `None` if it is 0.
fn mixed_ids(mixed: u64) -> Option<String> {
    let (requests, each) = match mixed {
        0 => return None,
        1 => ("1 request".to_owned(), "it"),
        _ => (format!("{mixed} requests"), "each"),
    };
    Some(format!(
        "{requests} started under an id that another request was still using: {each} is counted as part of that request"
    ))
}

/// Adds the times at which devices, requests and losses of events begin and end to `edges`, and returns all edges in
/// order.
fn with_edges(
    mut edges: Sorter<'_, Edge>,
    devices: &[DeviceTime],
    requests: &[Request],
    recorded: &Recorded,
    clock: &ServingClock,
) -> io::Result<Sorted<Edge>> {
    let mut add = |times: (i64, i64), [begin, end]: [EdgeKind; 2], process: usize| {
        let process = u32::try_from(process).map_err(io::Error::other)?;
        let pair = [
            Edge::new(times.0, begin, process),
            Edge::new(times.1, end, process),
        ];
        edges.extend(pair.into_iter().filter(|_| times.0 < times.1))
    };
    for device in devices {
        let end_ns = clock.serving_ns(device.from_ns) + device.wall_ns;
        let times = (device.from_ns, clock.trace_ns(end_ns));
        add(
            times,
            [EdgeKind::DeviceBegin, EdgeKind::DeviceEnd],
            device.process,
        )?;
    }
    for times in requests
        .iter()
        .filter_map(|request| request.in_flight_ns(i64::MAX))
    {
        add(times, [EdgeKind::RequestBegin, EdgeKind::RequestEnd], 0)?;
    }
    for loss in recorded.losses.iter().filter(|loss| loss.changed == 0) {
        let is_process = |process: &RecordedProcess| {
            process.pid == loss.pid && !process.is_tracks && process.name == loss.process
        };
        let process = recorded.processes.iter().position(is_process);
        if let (Some(times), Some(process)) = (loss.from_ns.zip(loss.to_ns), process) {
            add(times, [EdgeKind::LossBegin, EdgeKind::LossEnd], process)?;
        }
    }
    edges.finish()
}

/// Completes a report with everything that is derived from its figures.
fn with_verdict(
    mut report: RunReport,
    event_times: EventTimes,
    (edges, steps): (&Sorted<Edge>, &Sorted<StepRecord>),
) -> RunReport {
    let silences = event_times.silences(LEAST_NS);
    report.stalls = stalls(&report, &silences, edges, steps);
    report.findings = findings(&report);
    report.unrecognized = unrecognized(&report);
    report.verdict = verdict(&report);
    report
}

/// Returns true if the events come from a window of the run that has an end, so that later events are missing.
fn is_cut(events: &TraceEvents<'_>) -> bool {
    let window = events.report().window.as_ref();
    window.is_some_and(|window| window.to_ns.is_some())
}

/// Returns a number for the run of each process, in the order of the processes. Processes of one run have the same
/// number, and processes without a run have 0.
pub(crate) fn runs(events: &TraceEvents<'_>) -> Vec<u64> {
    let run = |process: &TraceProcess<'_>| process.run.map_or(0, |run| xxh3_64(run.as_bytes()));
    events.processes().iter().map(run).collect()
}
