//! Writes the tables that come from the report: `request`, `step`, `device`, `idle` and `name`.

use crate::folder::NewTables;
use crate::host_tables::Host;
use crate::write::cells::{Cell, Coding, Column};
use crate::write::table::Table;
use parquet::errors::{ParquetError, Result};
use std::io;
use std::path::PathBuf;
use trace_report::{
    DeviceRow, FigureColumn, FigureValue, Getter, IdleInterval, NameTime, Recorded, Request,
    RowSink, RunReport, StepRow, TableRow,
};

/// Tables of all hosts that are being written.
pub(crate) struct ReportTables<'a> {
    new: &'a NewTables,
    hosts: &'a [Host],
    /// Number of the host of each process.
    process_hosts: &'a [usize],
    processes: ProcessKeys,
    /// Table of steps of each host, whose rows are written as they are found.
    steps: Vec<RowTable>,
    /// Table of idle intervals of each host, whose rows are written as they are found.
    idle: Vec<RowTable>,
    /// Failure to write a row.
    failure: Option<ParquetError>,
}

impl<'a> ReportTables<'a> {
    pub(crate) fn new(
        new: &'a NewTables,
        hosts: &'a [Host],
        process_hosts: &'a [usize],
        upids: &[i64],
    ) -> ReportTables<'a> {
        let mut tables = ReportTables {
            new,
            hosts,
            process_hosts,
            processes: ProcessKeys {
                upids: upids.to_vec(),
                names: Vec::new(),
            },
            steps: Vec::new(),
            idle: Vec::new(),
            failure: None,
        };
        tables.steps = tables.host_tables::<StepRow>();
        tables.idle = tables.host_tables::<IdleInterval>();
        tables
    }

    /// Returns the failure to write a row, if there was one.
    pub(crate) fn into_failure(self) -> Option<ParquetError> {
        self.failure
    }

    /// Writes the remaining rows of steps and idle intervals, and the tables whose rows are in the report.
    pub(crate) fn finish(mut self, report: &RunReport) -> Result<()> {
        let streams = [&mut self.steps, &mut self.idle].map(std::mem::take);
        let mut streams = streams.into_iter().flatten();
        streams.try_for_each(RowTable::finish)?;
        self.write::<Request>(&report.request)?;
        self.write::<DeviceRow>(&DeviceRow::all(report))?;
        self.write::<NameTime>(&report.names)
    }

    fn host_tables<R: TableRow>(&self) -> Vec<RowTable> {
        let hosts = self.hosts.iter();
        let path = |host: &Host| self.new.file(R::TABLE, &host.partition, "all");
        hosts.map(|host| RowTable::new::<R>(path(host))).collect()
    }

    fn write<R: TableRow>(&self, rows: &[R]) -> Result<()> {
        let mut tables = self.host_tables::<R>();
        rows.iter()
            .try_for_each(|row| self.add_row(&mut tables, row))?;
        tables.into_iter().try_for_each(RowTable::finish)
    }

    /// Adds a row to the table of its host. A row without a process belongs to the first host.
    fn add_row<R: TableRow>(&self, tables: &mut [RowTable], row: &R) -> Result<()> {
        let host = row
            .process()
            .map_or(0, |process| self.process_hosts[process]);
        tables[host].push(row, &self.processes)
    }

    /// Adds a row to one of the tables that are written as rows are found. If this fails, stores the failure, and returns a different error.
    fn add_found<R: TableRow>(
        &mut self,
        stream: fn(&mut Self) -> &mut Vec<RowTable>,
        row: &R,
    ) -> io::Result<()> {
        let mut tables = std::mem::take(stream(self));
        let added = self.add_row(&mut tables, row);
        *stream(self) = tables;
        added.map_err(|failure| {
            self.failure = Some(failure);
            io::ErrorKind::Other.into()
        })
    }
}

impl RowSink for ReportTables<'_> {
    fn begin(&mut self, recorded: &Recorded) -> io::Result<()> {
        let names = (0..recorded.processes.len()).map(|number| recorded.process_name(number));
        self.processes.names = names.collect();
        Ok(())
    }

    fn step(&mut self, step: &StepRow) -> io::Result<()> {
        self.add_found(|tables| &mut tables.steps, step)
    }

    fn idle(&mut self, interval: &IdleInterval) -> io::Result<()> {
        self.add_found(|tables| &mut tables.idle, interval)
    }
}

/// Maximum number of rows in a row group. It is small because a request has about 40 columns.
const ROWS: usize = 32 << 10;
/// Maximum size of texts in a row group. Clients choose the ids of their requests, which may be long.
const TEXT_BYTES: usize = 32 << 20;

/// Ids and names of the processes, by their numbers.
#[derive(Debug, Default)]
struct ProcessKeys {
    upids: Vec<i64>,
    names: Vec<String>,
}

/// A table with the rows of one host.
struct RowTable(Table);

/// Returns the Parquet columns of a table. Each may be null.
fn columns<R: TableRow>() -> Vec<Column> {
    let long = |name| Column::long(name, Coding::Delta).or_null();
    let text = |name| Column::text(name).or_null();
    let columns = |(name, getter): &FigureColumn<R>| match getter {
        Getter::Int(_) | Getter::Count(_) => vec![long(name)],
        Getter::Us(_) | Getter::RealUs(_) => vec![Column::double(name).or_null()],
        Getter::Text(_) => vec![text(name)],
        Getter::Process(upid, _) => vec![long(upid), text(name)],
    };
    R::COLUMNS.iter().flat_map(columns).collect()
}

impl RowTable {
    /// Creates the table of a host. It has a file even if there are no rows.
    fn new<R: TableRow>(path: PathBuf) -> RowTable {
        let mut table = Table::new(columns::<R>()).with_limits(ROWS, TEXT_BYTES);
        table.begin(path);
        RowTable(table)
    }

    fn push<R: TableRow>(&mut self, row: &R, processes: &ProcessKeys) -> Result<()> {
        self.0.push(R::COLUMNS.iter().flat_map(|(_, getter)| {
            let value = getter.value(row);
            let (upid, cell) = match (getter, value) {
                (Getter::Process(..), FigureValue::Process(number)) => (
                    Some(Cell::Long(processes.upids[number])),
                    Cell::text(&processes.names[number]),
                ),
                (Getter::Process(..), _) => (Some(Cell::Null), Cell::Null),
                (_, value) => (None, value.into()),
            };
            upid.into_iter().chain([cell])
        }))
    }

    /// Writes the remaining rows and finishes the file.
    fn finish(mut self) -> Result<()> {
        self.0.write()?;
        self.0.finish()
    }
}
