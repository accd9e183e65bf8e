//! A table of few rows, written at once.

use super::cells::Cells;
use super::table_file::{Column, ROWS, TableFile};
use parquet::errors::Result;
use std::path::Path;
use trace_report::FigureValue;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Long(i64),
    Text(String),
}

impl Cell {
    pub(crate) fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<Option<i64>> for Cell {
    fn from(long: Option<i64>) -> Cell {
        long.map_or(Cell::Null, Cell::Long)
    }
}

impl From<Option<&str>> for Cell {
    fn from(text: Option<&str>) -> Cell {
        text.map_or(Cell::Null, Cell::text)
    }
}

/// Writes rows, of which each has a cell for each column.
pub(crate) fn write<const N: usize>(
    path: &Path,
    columns: &'static [Column; N],
    rows: impl IntoIterator<Item = [Cell; N]>,
) -> Result<()> {
    let mut file = TableFile::create(path, columns)?;
    let rows: Vec<[Cell; N]> = rows.into_iter().collect();
    for rows in rows.chunks(ROWS) {
        let mut cells: Vec<Cells> = columns.iter().map(Cells::of).collect();
        for row in rows {
            for (cells, cell) in cells.iter_mut().zip(row) {
                cells.push(match cell {
                    Cell::Null => FigureValue::Null,
                    Cell::Long(value) => FigureValue::Int(*value),
                    Cell::Text(text) => FigureValue::Text(text),
                });
            }
        }
        let values = cells.iter_mut().map(Cells::values).collect();
        file.write(rows.len(), values)?;
    }
    file.finish()
}
