//! A table whose columns and rows the report defines.

use super::cells::Cells;
use super::lazy_file::LazyFile;
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
pub(crate) struct RowTable {
    file: LazyFile,
    rows: usize,
    cells: Vec<Cells>,
}

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
        let columns = columns::<R>();
        let cells = columns.iter().map(Cells::of).collect();
        let mut file = LazyFile::new(columns);
        file.begin(path);
        RowTable {
            file,
            rows: 0,
            cells,
        }
    }

    pub(crate) fn push<R: TableRow>(&mut self, row: &R, processes: &ProcessKeys) -> Result<()> {
        let values = R::COLUMNS.iter().flat_map(|(_, getter)| {
            let value = getter.value(row);
            let (upid, value) = match (getter, value) {
                (Getter::Process(..), FigureValue::Process(number)) => (
                    Some(FigureValue::Int(processes.upids[number])),
                    FigureValue::Text(&processes.names[number]),
                ),
                (Getter::Process(..), _) => (Some(FigureValue::Null), FigureValue::Null),
                (_, value) => (None, value),
            };
            upid.into_iter().chain([value])
        });
        for (cells, value) in self.cells.iter_mut().zip(values) {
            cells.push(value);
        }
        self.rows += 1;
        let text_bytes: usize = self.cells.iter().map(Cells::text_bytes).sum();
        match self.rows < ROWS && text_bytes < TEXT_BYTES {
            true => Ok(()),
            false => self.write(),
        }
    }

    /// Writes the rows as a row group.
    fn write(&mut self) -> Result<()> {
        let values = self.cells.iter_mut().map(Cells::values).collect();
        self.file.write(self.rows, values)?;
        self.cells.iter_mut().for_each(Cells::clear);
        self.rows = 0;
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write()?;
        self.file.finish()
    }
}
