//! Columns of the tables of the report.

use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// Function that reads a column's value from a row. The variant gives the type of the column. Each value may be
/// unknown.
#[derive(Debug)]
pub enum Getter<R> {
    /// A whole number, such as a time in ns from the start of the trace.
    Int(fn(&R) -> Option<i64>),
    /// A count.
    Count(fn(&R) -> Option<u64>),
    /// A duration in ns. The column contains µs.
    Us(fn(&R) -> Option<i64>),
    /// A computed duration in ns, such as a mean. The column contains µs.
    RealUs(fn(&R) -> Option<f64>),
    /// A text.
    Text(fn(&R) -> Option<&str>),
    /// A process, by its number among [`Recorded::processes`](crate::Recorded::processes). In Parquet, the column
    /// contains its name, and another column with the given name contains its `upid`.
    Process(&'static str, fn(&R) -> Option<usize>),
}

/// A column of a table with rows of type `R`: its name with the unit, and the function that reads its value.
pub type FigureColumn<R> = (&'static str, Getter<R>);

/// Value of a column in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FigureValue<'a> {
    /// Unknown.
    Null,
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// A process, by its number.
    Process(usize),
}

/// A row of a table.
pub trait TableRow: Sized + 'static {
    /// Name of the table.
    const TABLE: &'static str;
    /// Columns of the table.
    const COLUMNS: &'static [FigureColumn<Self>];

    /// Returns the process on whose host the row was recorded, if any.
    fn process(&self) -> Option<usize>;
}

impl<R> Getter<R> {
    /// Reads the value of this getter's column from a row. Durations are converted from ns to µs. An unknown value is
    /// [`FigureValue::Null`].
    pub fn value<'r>(&self, row: &'r R) -> FigureValue<'r> {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let value = match self {
            Getter::Int(get) => get(row).map(FigureValue::Int),
            Getter::Count(get) => get(row).map(|n| FigureValue::Int(count(n))),
            Getter::Us(get) => get(row).map(|ns| FigureValue::Real(ns as f64 / 1e3)),
            Getter::RealUs(get) => get(row).map(|ns| FigureValue::Real(ns / 1e3)),
            Getter::Text(get) => get(row).map(FigureValue::Text),
            Getter::Process(_, get) => get(row).map(FigureValue::Process),
        };
        value.unwrap_or(FigureValue::Null)
    }
}

/// Returns a figure of a distribution, or `None` if it has no values.
pub(super) fn figure<T>(figures: &Quantiles, get: fn(&Quantiles) -> T) -> Option<T> {
    (figures.n > 0).then(|| get(figures))
}
