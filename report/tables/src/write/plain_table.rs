//! A table whose columns are numbers alone: `counter` and `flow` of a process.

use super::lazy_file::LazyFile;
use super::table_file::{Column, ROWS, Values};
use parquet::errors::Result;
use std::path::PathBuf;

/// Takes rows of some whole numbers and, behind them, as many others as the table has columns of doubles: none or one.
pub(crate) struct PlainTable<const LONGS: usize> {
    columns: usize,
    file: LazyFile,
    longs: [Vec<i64>; LONGS],
    doubles: Vec<f64>,
}

impl<const LONGS: usize> PlainTable<LONGS> {
    pub(crate) fn new(columns: &'static [Column]) -> PlainTable<LONGS> {
        PlainTable {
            columns: columns.len(),
            file: LazyFile::new(columns),
            longs: std::array::from_fn(|_| Vec::new()),
            doubles: Vec::new(),
        }
    }

    /// Begins the table of a process, whose file is made when there is a row.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.file.begin(path);
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
        let mut values: Vec<Values<'_>> = Vec::new();
        values.extend(self.longs.iter().map(|longs| Values::Longs(longs)));
        values.push(Values::Doubles(&self.doubles));
        values.truncate(self.columns);
        self.file.write(self.longs[0].len(), values)?;
        self.longs.iter_mut().for_each(Vec::clear);
        self.doubles.clear();
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.longs[0].is_empty() {
            self.write()?;
        }
        self.file.finish()
    }
}
