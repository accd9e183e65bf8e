//! Columns of the tables of the report.

use crate::quantiles::Quantiles;
use std::borrow::Cow;

/// The way a column gets its value from a row, which also gives the type of the column.
#[derive(Debug)]
pub enum Getter<R> {
    /// A whole number: a count, or a time in ns from the start of the trace.
    Int(fn(&R) -> i64),
    /// A whole number that may be unknown.
    OptionalInt(fn(&R) -> Option<i64>),
    /// A duration in ns. The column has it in µs.
    Us(fn(&R) -> i64),
    /// A duration in ns that may be unknown.
    OptionalUs(fn(&R) -> Option<i64>),
    /// A duration in ns that may be unknown and is computed, such as a mean.
    OptionalRealUs(fn(&R) -> Option<f64>),
    /// A text.
    Text(fn(&R) -> Cow<'_, str>),
    /// A text that may be unknown.
    OptionalText(fn(&R) -> Option<&str>),
    /// A process, by its number among [`Recorded::processes`](crate::Recorded::processes). In Parquet there is a column for its name, and another one for its
    /// `upid`, which is called as given here.
    Process(&'static str, fn(&R) -> Option<usize>),
}

/// A column of a table with rows of type `R`.
#[derive(Debug)]
pub struct FigureColumn<R> {
    /// The name, with the unit.
    pub name: &'static str,
    /// The way to its value.
    pub getter: Getter<R>,
}

/// The value of a column in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureValue<'a> {
    /// Unknown.
    Null,
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A process, by its number.
    Process(usize),
}

/// A row of a table.
pub trait TableRow: Sized + 'static {
    /// The name of the table.
    const TABLE: &'static str;
    /// Its columns.
    const COLUMNS: &'static [FigureColumn<Self>];

    /// Returns the process on whose host the row was recorded, if there is one.
    fn process(&self) -> Option<usize>;
}

pub(super) const fn column<R>(name: &'static str, getter: Getter<R>) -> FigureColumn<R> {
    FigureColumn { name, getter }
}

impl<R> FigureColumn<R> {
    /// Returns the value in a row.
    pub fn value<'r>(&self, row: &'r R) -> FigureValue<'r> {
        let us = |ns: i64| FigureValue::Real(ns as f64 / 1e3);
        match &self.getter {
            Getter::Int(get) => FigureValue::Int(get(row)),
            Getter::OptionalInt(get) => get(row).map_or(FigureValue::Null, FigureValue::Int),
            Getter::Us(get) => us(get(row)),
            Getter::OptionalUs(get) => get(row).map_or(FigureValue::Null, us),
            Getter::OptionalRealUs(get) => {
                get(row).map_or(FigureValue::Null, |ns| FigureValue::Real(ns / 1e3))
            }
            Getter::Text(get) => FigureValue::Text(get(row)),
            Getter::OptionalText(get) => {
                get(row).map_or(FigureValue::Null, |text| FigureValue::Text(Cow::from(text)))
            }
            Getter::Process(_, get) => get(row).map_or(FigureValue::Null, FigureValue::Process),
        }
    }
}

/// Returns a count as columns have it.
pub(super) fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a figure of a distribution, if it has values.
pub(super) fn figure<T>(of: &Quantiles, get: fn(&Quantiles) -> T) -> Option<T> {
    (of.n > 0).then(|| get(of))
}
