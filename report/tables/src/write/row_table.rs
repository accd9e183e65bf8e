//! A table whose columns and rows the report defines.

use super::cells::Cell;
use super::table::Table;
use super::table_file::{Coding, Column};
use parquet::errors::Result;
use std::path::PathBuf;
use trace_report::{FigureColumn, FigureValue, Getter, TableRow};

/// Rows of a row group. A request has some 40 columns.
const ROWS: usize = 32 << 10;
/// Bytes of texts of a row group. Clients choose the ids of their requests.
const TEXT_BYTES: usize = 32 << 20;

/// The processes as rows name them, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ProcessKeys {
    pub(crate) upids: Vec<i64>,
    pub(crate) names: Vec<String>,
}

/// The rows of one host.
pub(crate) struct RowTable(Table);

/// Returns the columns of a table in Parquet. Each may be null.
fn columns<R: TableRow>() -> Vec<Column> {
    let long = |name| Column::long(name, Coding::Delta).or_null();
    let text = |name| Column::text(name).or_null();
    let of = |(name, getter): &FigureColumn<R>| match getter {
        Getter::Int(_) | Getter::Count(_) => vec![long(name)],
        Getter::Us(_) | Getter::RealUs(_) => vec![Column::double(name).or_null()],
        Getter::Text(_) => vec![text(name)],
        Getter::Process(upid, _) => vec![long(upid), text(name)],
    };
    R::COLUMNS.iter().flat_map(of).collect()
}

impl RowTable {
    /// Creates the table of a host, which has a file even if it has no rows.
    pub(crate) fn new<R: TableRow>(path: PathBuf) -> RowTable {
        let mut table = Table::new(columns::<R>()).with_most(ROWS, TEXT_BYTES);
        table.begin(path);
        RowTable(table)
    }

    pub(crate) fn push<R: TableRow>(&mut self, row: &R, processes: &ProcessKeys) -> Result<()> {
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

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.0.write()?;
        self.0.finish()
    }
}
