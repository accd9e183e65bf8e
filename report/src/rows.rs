//! The report as tables with a row for each request, step, idle interval, device and name. Each column is defined once, and appears under its name in CSV and
//! in Parquet. The columns of requests are also members of the JSON.

mod column;
mod tables;

pub use column::{FigureColumn, FigureValue, Getter, TableRow};
pub use tables::*;
