//! A table whose rows are collected and written one row group at a time.

use super::cells::{Cell, Cells, Column};
use super::table_file::{ROWS, TableFile};
use parquet::errors::Result;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A table that collects rows for one file after another. A file is created when its first row group is written. All row groups and files share the same memory.
pub(crate) struct Table {
    columns: Cow<'static, [Column]>,
    /// Maximum number of rows in a row group.
    max_rows: usize,
    /// Size of texts from which on a row group is written.
    max_text_bytes: usize,
    path: PathBuf,
    file: Option<TableFile>,
    cells: Vec<Cells>,
    rows: usize,
}

impl Table {
    /// Creates a table with these columns. [`Table::begin`] must follow.
    pub(crate) fn new(columns: impl Into<Cow<'static, [Column]>>) -> Table {
        let columns = columns.into();
        Table {
            cells: columns.iter().map(Cells::new).collect(),
            columns,
            max_rows: ROWS,
            max_text_bytes: usize::MAX,
            path: PathBuf::new(),
            file: None,
            rows: 0,
        }
    }

    /// Returns the table with other limits for a row group.
    pub(crate) fn with_limits(self, max_rows: usize, max_text_bytes: usize) -> Table {
        Table {
            max_rows,
            max_text_bytes,
            ..self
        }
    }

    /// Continues with another file. The last one must be finished.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Returns true if no row was added to this row group.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of a text in this row group, for the column with this index.
    pub(super) fn number(&mut self, column: usize, text: &[u8]) -> Option<u32> {
        match &mut self.cells[column] {
            Cells::Texts(texts) => Some(texts.number(text)),
            _ => None,
        }
    }

    /// Adds a row, which has a cell for each column.
    pub(crate) fn push<'a>(&mut self, row: impl IntoIterator<Item = Cell<'a>>) -> Result<()> {
        for (cells, cell) in self.cells.iter_mut().zip(row) {
            cells.push(cell);
        }
        self.rows += 1;
        match self.rows < self.max_rows && self.text_bytes() < self.max_text_bytes {
            true => Ok(()),
            false => self.write(),
        }
    }

    /// Returns the size of all texts in this row group. Repeated texts count once.
    pub(super) fn text_bytes(&self) -> usize {
        self.cells.iter().map(Cells::text_bytes).sum()
    }

    /// Writes the rows as a row group. Creates the file if it does not exist yet, even without rows.
    pub(crate) fn write(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TableFile::create(&self.path, self.columns.clone())?),
        };
        file.write(std::mem::take(&mut self.rows), &mut self.cells)
    }

    /// Writes the remaining rows and finishes the file, if there is one.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.rows > 0 {
            self.write()?;
        }
        self.file.take().map_or(Ok(()), TableFile::finish)
    }
}

/// Writes a small table at once.
pub(crate) fn write<'a, const N: usize>(
    path: &Path,
    columns: &'static [Column; N],
    rows: impl IntoIterator<Item = [Cell<'a>; N]>,
) -> Result<()> {
    let mut table = Table::new(columns.as_slice());
    table.begin(path.to_owned());
    rows.into_iter().try_for_each(|row| table.push(row))?;
    table.write()?;
    table.finish()
}
