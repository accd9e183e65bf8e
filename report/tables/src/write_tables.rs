//! Writes a run as tables.

use crate::flow::{FlowEdge, FlowPoint, edges};
use crate::folder::NewTables;
use crate::gather::chunk_records::{ChunkContext, ChunkRecords};
use crate::gather::event_record::{EventKind, EventRecord, Sample};
use crate::gather::lanes::Lanes;
use crate::gather::texts::Texts;
use crate::host_tables::{Host, HostContext, hosts};
use crate::ids::MAX_PROCESSES;
use crate::options::{TablesOptions, Written};
use crate::process_tables::{LeftOut, ProcessFiles, ProcessTables, Shared, TrackRow};
use crate::report_tables::ReportTables;
use crate::write::arg_table::{self, ArgTable};
use crate::write::cells::{Cell, Coding, Column};
use crate::write::slice_table::{self, SliceTable};
use crate::write::table::Table;
use crate::write::table_file::TableFile;
use parquet::errors::ParquetError;
use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use trace_merge::events::{self, PlacedEvent, TraceEvents};
use trace_merge::{Error, Options, Progress, Report};
use trace_report::{Recorded, ReportOptions};
use trace_store::sorter::{Sorted, Sorter};
use trace_store::spill_vec::Spill;

/// Memory for sorting events.
const EVENT_BYTES: usize = 48 << 20;
/// Memory for sorting each of the other kinds of records.
const RECORD_BYTES: usize = 8 << 20;
/// Maximum number of processes that are written at the same time. Each needs memory for a row group of each of its tables.
const MAX_PARALLEL: usize = 2;

const COUNTER: [Column; 4] = [
    Column::long("id", Coding::Delta),
    Column::long("ts", Coding::Delta),
    Column::long("track_id", Coding::Dictionary),
    Column::double("value"),
];
const FLOW: [Column; 3] = [
    Column::long("id", Coding::Delta),
    Column::long("slice_out", Coding::Delta),
    Column::long("slice_in", Coding::Delta),
];

/// Reads a run, fragments or any Chrome trace, and writes its tables. The fragments of dead processes are not changed, even if the options ask for it.
///
/// # Errors
/// In the same cases as [`trace_merge::merge`], and if the tables cannot be written or exist already.
pub fn write_tables(
    options: &Options,
    tables: &TablesOptions,
    progress: &Progress,
) -> Result<(Written, Report), Error> {
    let options = Options {
        settle: false,
        ..options.clone()
    };
    let mut new = None;
    let (written, report) = events::read(&options, progress, |events| {
        // If the input has changed meanwhile, it is read again, and the tables written so far are removed.
        drop(new.take());
        let (tables, written) = Run::new(events, tables, options.threads)?.write()?;
        new = Some(tables);
        Ok(written)
    })?;
    if let Some(new) = new {
        new.publish()?;
    }
    Ok((written, report))
}

/// A run that is being written.
struct Run<'a> {
    events: &'a TraceEvents<'a>,
    lanes: Lanes,
    hosts: Vec<Host>,
    /// Number of the host of each process.
    process_hosts: Vec<usize>,
    upids: Vec<i64>,
    to: &'a Path,
    new: NewTables,
    /// Folders for temporary files.
    folders: [PathBuf; 2],
    /// Number of processes that are written at the same time.
    parallel: usize,
}

/// Records of all chunks.
struct Gathered {
    events: Sorted<EventRecord>,
    samples: Sorted<Sample>,
    shared: Shared,
    keys: Vec<crate::gather::texts::TextPair>,
    /// Numbers of slices and samples of each process.
    counts: Vec<[u64; 2]>,
}

impl<'a> Run<'a> {
    fn new(
        events: &'a mut TraceEvents<'_>,
        options: &'a TablesOptions,
        threads: usize,
    ) -> Result<Run<'a>, Error> {
        let processes = events.processes().len();
        if processes > MAX_PROCESSES {
            let why = format!("expected at most {MAX_PROCESSES} processes, found {processes}");
            return Err(Error::Usage(why));
        }
        events.match_spans()?;
        let events: &TraceEvents<'_> = events;
        let hosts = hosts(events, options)?;
        let (mut process_hosts, mut upids) = (vec![0; processes], vec![0; processes]);
        for (number, host) in hosts.iter().enumerate() {
            for process in &host.processes {
                process_hosts[*process] = number;
                upids[*process] = host.id.process(process + 1);
            }
        }
        let partitions = hosts.iter().map(|host| (host.partition.clone(), host.id));
        let new = NewTables::begin(options, partitions.collect())?;
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        Ok(Run {
            lanes: Lanes::new(events.threads()),
            new,
            events,
            hosts,
            process_hosts,
            upids,
            to: &options.to,
            folders: [std::env::temp_dir(), options.to.clone()],
            parallel: threads.min(MAX_PARALLEL),
        })
    }

    fn write(self) -> Result<(NewTables, Written), Error> {
        let recorded = self.write_report_tables()?;
        let mut gathered = self.gather()?;
        let points = Mutex::new(Sorter::in_any(&self.folders, RECORD_BYTES));
        let (tracks, left_out) = self.write_processes(&gathered, &points)?;
        gathered.events = Sorted::default();
        let points = points.into_inner().unwrap_or_else(PoisonError::into_inner);
        let flows = self.write_flows(points, &gathered.counts)?;
        let file_error = |error| self.file_error(error);
        let context = HostContext {
            events: self.events,
            lanes: &self.lanes,
            upids: &self.upids,
            tracks: &tracks,
            left_out,
            new: &self.new,
            recorded: &recorded,
        };
        for (number, host) in self.hosts.iter().enumerate() {
            context.write(host, number == 0).map_err(file_error)?;
        }
        self.write_missing_tables().map_err(file_error)?;
        let sum = |nth: usize| gathered.counts.iter().map(|counts| counts[nth]).sum();
        let written = Written {
            slices: sum(0),
            samples: sum(1),
            flows,
            bytes: self.new.bytes(),
        };
        Ok((self.new, written))
    }

    /// Writes the tables that come from the report. Returns the part of the report about the recording.
    fn write_report_tables(&self) -> Result<Recorded, Error> {
        let mut tables =
            ReportTables::new(&self.new, &self.hosts, &self.process_hosts, &self.upids);
        let options = ReportOptions::default();
        match trace_report::fold_rows(self.events, &options, &self.folders, &mut tables) {
            Ok(report) => {
                let finished = tables.finish(&report);
                finished.map_err(|error| self.file_error(error))?;
                Ok(report.recorded)
            }
            Err(error) => {
                let failure = tables.into_failure();
                Err(failure.map_or(error, |failure| self.file_error(failure)))
            }
        }
    }

    fn gather(&self) -> Result<Gathered, Error> {
        let (names, keys, counters) = (Texts::default(), Texts::default(), Texts::default());
        let context = ChunkContext {
            threads: self.events.threads(),
            lanes: &self.lanes,
            names: &names,
            keys: &keys,
            counters: &counters,
        };
        let mut events = Sorter::in_any(&self.folders, EVENT_BYTES);
        let mut samples = Sorter::in_any(&self.folders, RECORD_BYTES);
        let log = Spill::new(&self.folders);
        let mut counts = vec![[0; 2]; self.upids.len()];
        // Memory of earlier chunks.
        let unused = Mutex::new(Vec::new());
        let begin = || lock(&unused).pop().unwrap_or_default();
        let add_event =
            |records: &mut ChunkRecords, event: &PlacedEvent<'_>| records.add(&context, event);
        let mut add_chunk = |mut records: ChunkRecords| {
            let base = log.append(&records.entries).start as u64;
            for event in records.events.drain(..) {
                counts[event.process as usize][0] += u64::from(is_slice(event.kind));
                let at = event.at + base;
                events.push(EventRecord { at, ..event })?;
            }
            for sample in records.samples.drain(..) {
                counts[sample.process as usize][1] += 1;
                let at = sample.at + base;
                samples.push(Sample { at, ..sample })?;
            }
            lock(&unused).extend(records.emptied());
            Ok::<(), io::Error>(())
        };
        self.events.fold(begin, add_event, |records| {
            add_chunk(records).map_err(|error| self.temporary_error(error))
        })?;
        let temporary_error = |error| self.temporary_error(error);
        let log = log.finish().map_err(temporary_error)?;
        Ok(Gathered {
            events: events.finish().map_err(temporary_error)?,
            samples: samples.finish().map_err(temporary_error)?,
            shared: Shared {
                names: names.into_pairs(),
                counters: counters.into_pairs(),
                log,
            },
            keys: keys.into_pairs(),
            counts,
        })
    }

    /// Writes the tables of all processes. Returns their tracks, and the counts of missing data.
    fn write_processes(
        &self,
        gathered: &Gathered,
        points: &Mutex<Sorter<'_, FlowPoint>>,
    ) -> Result<(Vec<Vec<TrackRow>>, LeftOut), Error> {
        let files = || ProcessFiles {
            slices: SliceTable::new(&gathered.shared.names),
            args: ArgTable::new(&gathered.keys),
            samples: Table::new(&COUNTER),
        };
        let pool = ThreadPoolBuilder::new().num_threads(self.parallel);
        let pool = pool
            .build()
            .map_err(|error| self.temporary_error(io::Error::other(error)))?;
        // Each thread writes one process after another, and reuses the memory of the tables.
        let processes = (0..self.upids.len()).par_bridge();
        let written = processes.map_init(files, |files, number| {
            let tables = self.write_process(number, gathered, points, files)?;
            Ok((number, tables))
        });
        let written: Result<Vec<_>, Error> = pool.install(|| written.collect());
        let mut written = written?;
        written.sort_unstable_by_key(|(number, _)| *number);
        let written = written.into_iter().map(|(_, tables)| tables);
        let (tracks, left_out): (_, Vec<LeftOut>) = written.unzip();
        Ok((tracks, left_out.into_iter().sum()))
    }

    fn write_process<'g>(
        &self,
        number: usize,
        gathered: &'g Gathered,
        points: &Mutex<Sorter<'_, FlowPoint>>,
        files: &mut ProcessFiles<'g>,
    ) -> Result<(Vec<TrackRow>, LeftOut), Error> {
        let file_error = |error| self.file_error(error);
        let temporary_error = |error| self.temporary_error(error);
        let wanted = u32::try_from(number).unwrap_or(u32::MAX);
        let host = &self.hosts[self.process_hosts[number]];
        let file = |table: &str| self.new.file(table, &host.partition, &file_name(number));
        files.slices.begin(file("slice"));
        files.args.begin(file("args"));
        files.samples.begin(file("counter"));
        let first = |nth: usize| {
            let before = gathered.counts[..number].iter();
            host.id.row(before.map(|counts| counts[nth]).sum())
        };
        let upid = self.upids[number];
        let firsts = (first(0), first(1));
        let first_lane = u32::try_from(self.lanes.in_process(number).start).unwrap_or(0);
        let mut tables = ProcessTables::new(&gathered.shared, files, upid, first_lane, firsts);
        for event in process_records(&gathered.events, wanted, |event| event.process) {
            tables.add_event(event).map_err(file_error)?;
            let found = tables.drain_points();
            if found.len() > 0 {
                let mut points = lock(points);
                for point in found {
                    points.push(point).map_err(temporary_error)?;
                }
            }
        }
        for sample in process_records(&gathered.samples, wanted, |sample| sample.process) {
            tables.add_sample(sample).map_err(file_error)?;
        }
        tables.finish().map_err(file_error)
    }

    /// Writes the edges of flows to the files of the processes in which they begin. Returns their number.
    fn write_flows(
        &self,
        points: Sorter<'_, FlowPoint>,
        counts: &[[u64; 2]],
    ) -> Result<u64, Error> {
        let file_error = |error| self.file_error(error);
        let temporary_error = |error| self.temporary_error(error);
        let mut sorted = Sorter::in_any(&self.folders, RECORD_BYTES);
        let points = points.finish().map_err(temporary_error)?;
        edges(&points, |edge| sorted.push(edge)).map_err(temporary_error)?;
        drop(points);
        let sorted: Sorted<FlowEdge> = sorted.finish().map_err(temporary_error)?;
        // The slices of each process have consecutive ids.
        let mut ends: Vec<(i64, usize)> = Vec::new();
        let mut before = 0;
        for (number, counts) in counts.iter().enumerate() {
            before += counts[0];
            let host = &self.hosts[self.process_hosts[number]];
            ends.push((host.id.row(before), number));
        }
        ends.sort_unstable();
        let mut table = Table::new(&FLOW);
        let (mut current, mut nth) = (None, 0);
        for edge in sorted.iter() {
            let at = ends.partition_point(|(end, _)| *end <= edge.slice_out);
            let number = ends[at].1;
            let host = &self.hosts[self.process_hosts[number]];
            if current.replace(number) != Some(number) {
                table.finish().map_err(file_error)?;
                table.begin(self.new.file("flow", &host.partition, &file_name(number)));
            }
            let row = [host.id.row(nth), edge.slice_out, edge.slice_in];
            nth += 1;
            table.push(row.map(Cell::Long)).map_err(file_error)?;
        }
        table.finish().map_err(file_error)?;
        Ok(nth)
    }

    /// Writes a file without rows for each table that a host does not have, so that statements find it.
    fn write_missing_tables(&self) -> Result<(), ParquetError> {
        let tables: [(&str, &'static [Column]); 4] = [
            ("slice", &slice_table::COLUMNS),
            ("args", &arg_table::COLUMNS),
            ("counter", &COUNTER),
            ("flow", &FLOW),
        ];
        for host in &self.hosts {
            for (table, columns) in tables {
                let path = self.new.file(table, &host.partition, "none");
                let folder = path.parent().unwrap_or(self.to);
                if std::fs::read_dir(folder)?.next().is_none() {
                    TableFile::create(&path, columns)?.finish()?;
                }
            }
        }
        Ok(())
    }

    fn file_error(&self, error: ParquetError) -> Error {
        let source = match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        };
        Error::Write {
            path: self.to.to_owned(),
            source,
        }
    }

    fn temporary_error(&self, source: io::Error) -> Error {
        Error::Temporary {
            folder: self.folders[0].clone(),
            source,
        }
    }
}

/// Returns the records of a process from all sorted records.
fn process_records<R>(records: &[R], wanted: u32, process: impl Fn(&R) -> u32) -> &[R] {
    let from = &records[records.partition_point(|record| process(record) < wanted)..];
    &from[..from.partition_point(|record| process(record) == wanted)]
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the files of the process with this number.
fn file_name(number: usize) -> String {
    format!("{:05}", number + 1)
}

fn is_slice(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Span
            | EventKind::Begin
            | EventKind::Instant
            | EventKind::ProcessInstant
            | EventKind::GlobalInstant
            | EventKind::AsyncBegin
            | EventKind::AsyncInstant
    )
}
