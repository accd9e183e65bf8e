//! A table whose columns and rows the report defines.

use super::lazy_file::LazyFile;
use super::table_file::{Coding, Column, Values};
use super::text_column::TextColumn;
use parquet::errors::Result;
use std::path::PathBuf;
use trace_report::{FigureValue, Getter, TableRow};

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

/// The cells of a column.
enum Cells {
    Longs(Vec<i64>, Vec<i16>),
    Doubles(Vec<f64>, Vec<i16>),
    Texts(TextColumn),
    /// Of a process the `upid` and the name.
    Processes(Vec<i64>, Vec<i16>, TextColumn),
}

impl Cells {
    fn for_column<R>(column: &trace_report::FigureColumn<R>) -> Cells {
        match column.getter {
            Getter::Int(_) | Getter::OptionalInt(_) => Cells::Longs(Vec::new(), Vec::new()),
            Getter::Us(_) | Getter::OptionalUs(_) | Getter::OptionalRealUs(_) => {
                Cells::Doubles(Vec::new(), Vec::new())
            }
            Getter::Text(_) | Getter::OptionalText(_) => Cells::Texts(TextColumn::default()),
            Getter::Process(..) => Cells::Processes(Vec::new(), Vec::new(), TextColumn::default()),
        }
    }

    fn push(&mut self, value: &FigureValue<'_>, processes: &ProcessKeys) {
        match (self, value) {
            (Cells::Longs(longs, levels), value) => {
                let long = match value {
                    FigureValue::Int(value) => Some(*value),
                    _ => None,
                };
                levels.push(long.is_some().into());
                longs.extend(long);
            }
            (Cells::Doubles(doubles, levels), value) => {
                let double = match value {
                    FigureValue::Real(value) => Some(*value),
                    _ => None,
                };
                levels.push(double.is_some().into());
                doubles.extend(double);
            }
            (Cells::Texts(texts), value) => texts.push_text(match value {
                FigureValue::Text(text) => Some(text.as_bytes()),
                _ => None,
            }),
            (Cells::Processes(upids, levels, names), value) => {
                let number = match value {
                    FigureValue::Process(number) => Some(*number),
                    _ => None,
                };
                levels.push(number.is_some().into());
                upids.extend(number.map(|number| processes.upids[number]));
                names.push_text(number.map(|number| processes.names[number].as_bytes()));
            }
        }
    }

    fn put<'c>(&'c mut self, values: &mut Vec<Values<'c>>) {
        match self {
            Cells::Longs(longs, levels) => values.push(Values::SomeLongs(longs, levels)),
            Cells::Doubles(doubles, levels) => values.push(Values::SomeDoubles(doubles, levels)),
            Cells::Texts(texts) => values.push(Values::Texts(texts)),
            Cells::Processes(upids, levels, names) => {
                values.push(Values::SomeLongs(upids, levels));
                values.push(Values::Texts(names));
            }
        }
    }

    fn text_bytes(&self) -> usize {
        match self {
            Cells::Longs(..) | Cells::Doubles(..) => 0,
            Cells::Texts(texts) | Cells::Processes(_, _, texts) => texts.bytes(),
        }
    }

    /// Empties it. Columns of texts are empty once they were written.
    fn clear(&mut self) {
        match self {
            Cells::Longs(longs, levels) | Cells::Processes(longs, levels, _) => {
                longs.clear();
                levels.clear();
            }
            Cells::Doubles(doubles, levels) => {
                doubles.clear();
                levels.clear();
            }
            Cells::Texts(_) => {}
        }
    }
}

/// Returns the columns of a table in Parquet. Each may be null.
fn columns<R: TableRow>() -> Vec<Column> {
    let long = |name| Column::long(name, Coding::Delta).or_null();
    let text = |name| Column::text(name).or_null();
    let of = |column: &trace_report::FigureColumn<R>| match column.getter {
        Getter::Int(_) | Getter::OptionalInt(_) => vec![long(column.name)],
        Getter::Us(_) | Getter::OptionalUs(_) | Getter::OptionalRealUs(_) => {
            vec![Column::double(column.name).or_null()]
        }
        Getter::Text(_) | Getter::OptionalText(_) => vec![text(column.name)],
        Getter::Process(upid, _) => vec![long(upid), text(column.name)],
    };
    R::COLUMNS.iter().flat_map(of).collect()
}

impl RowTable {
    /// Creates the table of a host, which has a file even if it has no rows.
    pub(crate) fn new<R: TableRow>(path: PathBuf) -> RowTable {
        let mut file = LazyFile::new(columns::<R>());
        file.begin(path);
        RowTable {
            file,
            rows: 0,
            cells: R::COLUMNS.iter().map(Cells::for_column).collect(),
        }
    }

    pub(crate) fn push<R: TableRow>(&mut self, row: &R, processes: &ProcessKeys) -> Result<()> {
        for (column, cells) in R::COLUMNS.iter().zip(&mut self.cells) {
            cells.push(&column.value(row), processes);
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
        let mut values = Vec::new();
        self.cells
            .iter_mut()
            .for_each(|cells| cells.put(&mut values));
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
