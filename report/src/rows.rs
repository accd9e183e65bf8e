//! The report as tables with a row for each request, step, idle interval, device and name. Each column is defined once, and appears under its name in the JSON,
//! in CSV and in Parquet.

mod device;
mod idle_interval;
mod name;
mod request;
mod step;

pub use device::DeviceRow;
pub use idle_interval::IdleInterval;
pub use step::{Step, StepRole};

use crate::quantiles::Quantiles;
use crate::table::recorded::Recorded;
use std::borrow::Cow;
use std::io;

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
pub struct Column<R> {
    /// The name, with the unit.
    pub name: &'static str,
    /// The way to its value.
    pub getter: Getter<R>,
}

/// The value of a column in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
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
pub trait Row: Sized + 'static {
    /// The name of the table.
    const TABLE: &'static str;
    /// Its columns.
    const COLUMNS: &'static [Column<Self>];

    /// Returns the process on whose host the row was recorded, if there is one.
    fn process(&self) -> Option<usize>;
}

/// Receives the rows of tables that are too long to be kept in memory, while a run is folded. The rows of a table come in the order of their processes and
/// start times.
pub trait RowSink {
    /// Takes what was recorded, before any row.
    ///
    /// # Errors
    /// If rows cannot be stored.
    fn begin(&mut self, recorded: &Recorded) -> io::Result<()>;

    /// Takes a step.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn step(&mut self, step: &Step) -> io::Result<()>;

    /// Takes an idle interval.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn idle(&mut self, interval: &IdleInterval) -> io::Result<()>;
}

const fn column<R>(name: &'static str, getter: Getter<R>) -> Column<R> {
    Column { name, getter }
}

impl<R> Column<R> {
    /// Returns the value in a row.
    pub fn value<'r>(&self, row: &'r R) -> Value<'r> {
        let us = |ns: i64| Value::Real(ns as f64 / 1e3);
        match &self.getter {
            Getter::Int(get) => Value::Int(get(row)),
            Getter::OptionalInt(get) => get(row).map_or(Value::Null, Value::Int),
            Getter::Us(get) => us(get(row)),
            Getter::OptionalUs(get) => get(row).map_or(Value::Null, us),
            Getter::OptionalRealUs(get) => get(row).map_or(Value::Null, |ns| Value::Real(ns / 1e3)),
            Getter::Text(get) => Value::Text(get(row)),
            Getter::OptionalText(get) => {
                get(row).map_or(Value::Null, |text| Value::Text(Cow::from(text)))
            }
            Getter::Process(_, get) => get(row).map_or(Value::Null, Value::Process),
        }
    }
}

/// Returns a count as columns have it.
fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a figure of a distribution, if it has values.
fn figure<T>(of: &Quantiles, get: fn(&Quantiles) -> T) -> Option<T> {
    (of.n > 0).then(|| get(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NameTime, Request};
    use std::collections::BTreeSet;

    fn check<R: Row>() {
        let mut names = BTreeSet::new();
        for column in R::COLUMNS {
            assert!(names.insert(column.name), "{} {}", R::TABLE, column.name);
            let is_us = matches!(
                column.getter,
                Getter::Us(_) | Getter::OptionalUs(_) | Getter::OptionalRealUs(_)
            );
            assert_eq!(column.name.ends_with("_us"), is_us, "{}", column.name);
        }
    }

    #[test]
    fn names_of_columns_have_units() {
        check::<Request>();
        check::<Step>();
        check::<IdleInterval>();
        check::<DeviceRow>();
        check::<NameTime>();
    }
}
