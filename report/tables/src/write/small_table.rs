//! A table of few rows, written at once.

use super::table_file::{Column, ROWS, TableFile, Values};
use super::text_column::TextColumn;
use parquet::basic::Type;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use std::path::Path;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Long(i64),
    Text(ByteArray),
}

impl Cell {
    pub(crate) fn text(text: &str) -> Cell {
        Cell::Text(ByteArray::from(text))
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
    rows: &[[Cell; N]],
) -> Result<()> {
    let mut file = TableFile::create(path, columns)?;
    for rows in rows.chunks(ROWS) {
        let long = |cell: &Cell| match cell {
            Cell::Long(value) => Some(*value),
            _ => None,
        };
        let longs: Vec<Vec<i64>> = (0..N)
            .map(|nth| rows.iter().filter_map(|row| long(&row[nth])).collect())
            .collect();
        let levels: Vec<Vec<i16>> = (0..N)
            .map(|nth| {
                let is_there = |row: &[Cell; N]| i16::from(row[nth] != Cell::Null);
                rows.iter().map(is_there).collect()
            })
            .collect();
        let mut texts: [TextColumn; N] = std::array::from_fn(|_| TextColumn::default());
        for row in rows {
            for (cell, texts) in row.iter().zip(&mut texts) {
                texts.push_text(match cell {
                    Cell::Text(text) => Some(text.data()),
                    _ => None,
                });
            }
        }
        let values = texts.iter_mut().zip(0..);
        let values = values.map(
            |(texts, nth)| match (columns[nth].kind, columns[nth].is_null) {
                (Type::BYTE_ARRAY, _) => Values::Texts(texts),
                (_, true) => Values::SomeLongs(&longs[nth], &levels[nth]),
                _ => Values::Longs(&longs[nth]),
            },
        );
        file.write(rows.len(), values.collect())?;
    }
    file.finish()
}
