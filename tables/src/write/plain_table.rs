//! A table whose columns are numbers alone: `counter` and `flow` of a process.

use super::table_file::{Column, ROWS, TableFile, Values};
use parquet::errors::Result;
use std::path::PathBuf;

/// Takes rows of some whole numbers and, behind them, as many others as the table has columns of doubles: none or one.
pub(crate) struct PlainTable<const LONGS: usize> {
    path: PathBuf,
    columns: &'static [Column],
    file: Option<TableFile>,
    longs: [Vec<i64>; LONGS],
    doubles: Vec<f64>,
}

impl<const LONGS: usize> PlainTable<LONGS> {
    /// One in a file that is made when there is a row.
    pub(crate) fn new(path: PathBuf, columns: &'static [Column]) -> PlainTable<LONGS> {
        PlainTable {
            path,
            columns,
            file: None,
            longs: std::array::from_fn(|_| Vec::new()),
            doubles: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, longs: [i64; LONGS], double: Option<f64>) -> Result<()> {
        if self.longs[0].len() == ROWS {
            self.write()?;
        }
        for (column, value) in self.longs.iter_mut().zip(longs) {
            column.push(value);
        }
        self.doubles.extend(double);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TableFile::create(&self.path, self.columns)?),
        };
        let mut values: Vec<Values<'_>> = Vec::new();
        values.extend(self.longs.iter().map(|longs| Values::Longs(longs)));
        values.push(Values::Doubles(&self.doubles));
        values.truncate(self.columns.len());
        file.write(self.longs[0].len(), values)?;
        self.longs.iter_mut().for_each(Vec::clear);
        self.doubles.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        if !self.longs[0].is_empty() {
            self.write()?;
        }
        self.file.map_or(Ok(()), TableFile::finish)
    }
}
