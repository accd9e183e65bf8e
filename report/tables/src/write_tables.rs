//! A run, written as tables.

use crate::flow::{FlowEdge, FlowPoint, edges};
use crate::folder::NewTables;
use crate::gather::chunk_rows::{ChunkContext, ChunkRows};
use crate::gather::item::{Act, Item, Sample};
use crate::gather::rows::Rows;
use crate::gather::texts::Texts;
use crate::host_tables::{Host, HostContext, hosts};
use crate::ids::PROCESSES;
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

/// Memory for events while they are sorted, and for each of the other kinds of records.
const ITEM_BYTES: usize = 48 << 20;
const RECORD_BYTES: usize = 8 << 20;
/// Processes that are written at once: each needs room for a row group of each of its tables.
const AT_ONCE: usize = 2;

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

/// Reads a run, fragments or any Chrome trace, and writes its tables. The fragments of dead processes stay as they are, whatever the options say.
///
/// # Errors
/// As [`trace_merge::merge`], and if the tables cannot be written, or are there already.
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
        // What was written of an input that changed meanwhile goes.
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
    rows: Rows,
    hosts: Vec<Host>,
    /// The host of each process.
    host_of: Vec<usize>,
    upids: Vec<i64>,
    to: &'a Path,
    new: NewTables,
    folders: [PathBuf; 2],
    /// Processes that are written at once.
    at_once: usize,
}

/// What all chunks gave.
struct Gathered {
    items: Sorted<Item>,
    samples: Sorted<Sample>,
    shared: Shared,
    keys: Vec<crate::gather::texts::TextPair>,
    /// Slices and samples of each process.
    counts: Vec<[u64; 2]>,
}

impl<'a> Run<'a> {
    fn new(
        events: &'a mut TraceEvents<'_>,
        options: &'a TablesOptions,
        threads: usize,
    ) -> Result<Run<'a>, Error> {
        let processes = events.processes().len();
        if processes > PROCESSES {
            let why = format!("expected {PROCESSES} processes at most, found {processes}");
            return Err(Error::Usage(why));
        }
        events.match_spans()?;
        let events: &TraceEvents<'_> = events;
        let hosts = hosts(events, options)?;
        let (mut host_of, mut upids) = (vec![0; processes], vec![0; processes]);
        for (number, host) in hosts.iter().enumerate() {
            for process in &host.processes {
                (host_of[*process], upids[*process]) = (number, host.id.process(process + 1));
            }
        }
        let partitions = hosts.iter().map(|host| (host.partition.clone(), host.id));
        let new = NewTables::begin(options, partitions.collect())?;
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        Ok(Run {
            rows: Rows::of(events.threads()),
            new,
            events,
            hosts,
            host_of,
            upids,
            to: &options.to,
            folders: [std::env::temp_dir(), options.to.clone()],
            at_once: threads.min(AT_ONCE),
        })
    }

    fn write(self) -> Result<(NewTables, Written), Error> {
        let recorded = self.report_tables()?;
        let mut gathered = self.gather()?;
        let points = Mutex::new(Sorter::in_any(&self.folders, RECORD_BYTES));
        let (tracks, left_out) = self.processes(&gathered, &points)?;
        gathered.items = Sorted::default();
        let points = points.into_inner().unwrap_or_else(PoisonError::into_inner);
        let flows = self.flows(points, &gathered.counts)?;
        let of_file = |error| self.of_file(error);
        let context = HostContext {
            events: self.events,
            rows: &self.rows,
            upids: &self.upids,
            tracks: &tracks,
            left_out,
            new: &self.new,
            recorded: &recorded,
        };
        for (number, host) in self.hosts.iter().enumerate() {
            context.write(host, number == 0).map_err(of_file)?;
        }
        self.fill().map_err(of_file)?;
        let sum = |nth: usize| gathered.counts.iter().map(|counts| counts[nth]).sum();
        let written = Written {
            slices: sum(0),
            samples: sum(1),
            flows,
            bytes: self.new.bytes(),
        };
        Ok((self.new, written))
    }

    /// Writes the tables that come from the report, and returns what was recorded.
    fn report_tables(&self) -> Result<Recorded, Error> {
        let mut tables = ReportTables::new(&self.new, &self.hosts, &self.host_of, &self.upids);
        let options = ReportOptions::default();
        match trace_report::fold_rows(self.events, &options, &self.folders, &mut tables) {
            Ok(report) => {
                let finished = tables.finish(&report);
                finished.map_err(|error| self.of_file(error))?;
                Ok(report.recorded)
            }
            Err(error) => {
                let failure = tables.into_failure();
                Err(failure.map_or(error, |failure| self.of_file(failure)))
            }
        }
    }

    fn gather(&self) -> Result<Gathered, Error> {
        let (names, keys, counters) = (Texts::default(), Texts::default(), Texts::default());
        let context = ChunkContext {
            threads: self.events.threads(),
            rows: &self.rows,
            names: &names,
            keys: &keys,
            counters: &counters,
        };
        let mut items = Sorter::in_any(&self.folders, ITEM_BYTES);
        let mut samples = Sorter::in_any(&self.folders, RECORD_BYTES);
        let log = Spill::new(&self.folders);
        let mut counts = vec![[0; 2]; self.upids.len()];
        let spare = Mutex::new(Vec::new());
        let begin = || lock(&spare).pop().unwrap_or_default();
        let take = |rows: &mut ChunkRows, event: &PlacedEvent<'_>| rows.take(&context, event);
        let mut add = |mut rows: ChunkRows| {
            let base = log.append(&rows.entries).start as u64;
            for item in rows.items.drain(..) {
                counts[item.process as usize][0] += u64::from(is_slice(item.act));
                let at = item.at + base;
                items.push(Item { at, ..item })?;
            }
            for sample in rows.samples.drain(..) {
                counts[sample.process as usize][1] += 1;
                let at = sample.at + base;
                samples.push(Sample { at, ..sample })?;
            }
            lock(&spare).extend(rows.emptied());
            Ok::<(), io::Error>(())
        };
        self.events.fold(begin, take, |rows| {
            add(rows).map_err(|error| self.of_temporary(error))
        })?;
        let of_temporary = |error| self.of_temporary(error);
        let log = log.finish().map_err(of_temporary)?;
        Ok(Gathered {
            items: items.finish().map_err(of_temporary)?,
            samples: samples.finish().map_err(of_temporary)?,
            shared: Shared {
                names: names.into_pairs(),
                counters: counters.into_pairs(),
                log,
            },
            keys: keys.into_pairs(),
            counts,
        })
    }

    /// Writes the tables of all processes; their tracks, and what was left out.
    fn processes(
        &self,
        gathered: &Gathered,
        points: &Mutex<Sorter<'_, FlowPoint>>,
    ) -> Result<(Vec<Vec<TrackRow>>, LeftOut), Error> {
        let files = || ProcessFiles {
            slices: SliceTable::new(&gathered.shared.names),
            args: ArgTable::new(&gathered.keys),
            samples: Table::new(&COUNTER),
        };
        let pool = ThreadPoolBuilder::new().num_threads(self.at_once);
        let pool = pool
            .build()
            .map_err(|error| self.of_temporary(io::Error::other(error)))?;
        // Each thread takes the next process, and keeps the memory of its tables.
        let processes = (0..self.upids.len()).par_bridge();
        let written = processes.map_init(files, |files, number| {
            Ok((number, self.process(number, gathered, points, files)?))
        });
        let written: Result<Vec<_>, Error> = pool.install(|| written.collect());
        let mut written = written?;
        written.sort_unstable_by_key(|(number, _)| *number);
        let written = written.into_iter().map(|(_, tables)| tables);
        let (tracks, left_out): (_, Vec<LeftOut>) = written.unzip();
        Ok((tracks, left_out.into_iter().sum()))
    }

    fn process<'g>(
        &self,
        number: usize,
        gathered: &'g Gathered,
        points: &Mutex<Sorter<'_, FlowPoint>>,
        files: &mut ProcessFiles<'g>,
    ) -> Result<(Vec<TrackRow>, LeftOut), Error> {
        let of_file = |error| self.of_file(error);
        let of_temporary = |error| self.of_temporary(error);
        let wanted = u32::try_from(number).unwrap_or(u32::MAX);
        let host = &self.hosts[self.host_of[number]];
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
        let first_row = u32::try_from(self.rows.of_process(number).start).unwrap_or(0);
        let mut tables = ProcessTables::new(&gathered.shared, files, upid, first_row, firsts);
        for item in of_process(&gathered.items, wanted, |item| item.process) {
            tables.take(item).map_err(of_file)?;
            let found = tables.take_points();
            if found.len() > 0 {
                let mut points = lock(points);
                for point in found {
                    points.push(point).map_err(of_temporary)?;
                }
            }
        }
        for sample in of_process(&gathered.samples, wanted, |sample| sample.process) {
            tables.take_sample(sample).map_err(of_file)?;
        }
        tables.finish().map_err(of_file)
    }

    /// Writes the edges of flows, with the process of the slice that each leaves; how many there are.
    fn flows(&self, points: Sorter<'_, FlowPoint>, counts: &[[u64; 2]]) -> Result<u64, Error> {
        let of_file = |error| self.of_file(error);
        let of_temporary = |error| self.of_temporary(error);
        let mut sorted = Sorter::in_any(&self.folders, RECORD_BYTES);
        let points = points.finish().map_err(of_temporary)?;
        edges(&points, |edge| sorted.push(edge)).map_err(of_temporary)?;
        drop(points);
        let sorted: Sorted<FlowEdge> = sorted.finish().map_err(of_temporary)?;
        // The slices of each process have the ids from one on up to another.
        let mut ends: Vec<(i64, usize)> = Vec::new();
        let mut before = 0;
        for (number, counts) in counts.iter().enumerate() {
            before += counts[0];
            ends.push((self.hosts[self.host_of[number]].id.row(before), number));
        }
        ends.sort_unstable();
        let mut table = Table::new(&FLOW);
        let (mut of, mut nth) = (None, 0);
        for edge in sorted.iter() {
            let at = ends.partition_point(|(end, _)| *end <= edge.slice_out);
            let number = ends[at].1;
            let host = &self.hosts[self.host_of[number]];
            if of.replace(number) != Some(number) {
                table.finish().map_err(of_file)?;
                table.begin(self.new.file("flow", &host.partition, &file_name(number)));
            }
            let row = [host.id.row(nth), edge.slice_out, edge.slice_in];
            nth += 1;
            table.push(row.map(Cell::Long)).map_err(of_file)?;
        }
        table.finish().map_err(of_file)?;
        Ok(nth)
    }

    /// A table of which a host has no file gets one without rows, so that statements find it.
    fn fill(&self) -> Result<(), ParquetError> {
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

    fn of_file(&self, error: ParquetError) -> Error {
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

    fn of_temporary(&self, source: io::Error) -> Error {
        Error::Temporary {
            folder: self.folders[0].clone(),
            source,
        }
    }
}

/// Returns the records of a process from those in order.
fn of_process<R>(records: &[R], wanted: u32, process: impl Fn(&R) -> u32) -> &[R] {
    let from = &records[records.partition_point(|record| process(record) < wanted)..];
    &from[..from.partition_point(|record| process(record) == wanted)]
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of a process by its number.
fn file_name(number: usize) -> String {
    format!("{:05}", number + 1)
}

fn is_slice(act: Act) -> bool {
    matches!(
        act,
        Act::Span
            | Act::Begin
            | Act::Instant
            | Act::ProcessInstant
            | Act::GlobalInstant
            | Act::AsyncBegin
            | Act::AsyncInstant
    )
}
