//! A file of a table that is made when there is a row, and one after the other of several.

use super::table_file::{Column, TableFile, Values};
use parquet::errors::Result;
use std::borrow::Cow;
use std::path::PathBuf;

/// The file that rows go to.
pub(crate) struct LazyFile {
    columns: Cow<'static, [Column]>,
    path: PathBuf,
    file: Option<TableFile>,
}

impl LazyFile {
    /// One of these columns, whose first path is to come.
    pub(crate) fn new(columns: impl Into<Cow<'static, [Column]>>) -> LazyFile {
        LazyFile {
            columns: columns.into(),
            path: PathBuf::new(),
            file: None,
        }
    }

    /// Goes on with another file; the last one must be finished.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Writes a row group. Columns of texts are empty then.
    pub(crate) fn write(&mut self, rows: usize, values: Vec<Values<'_>>) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TableFile::create(&self.path, self.columns.clone())?),
        };
        file.write(rows, values)
    }

    /// Finishes the file, if there is one.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.file.take().map_or(Ok(()), TableFile::finish)
    }
}
