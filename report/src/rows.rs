//! The report as tables of requests, steps, idle intervals, devices and names. Each column is defined once, and has the
//! same name in CSV and in Parquet. The columns of requests are also members of the JSON.

mod column;
mod tables;

pub use column::{FigureColumn, FigureValue, Getter, TableRow};
pub use tables::*;
