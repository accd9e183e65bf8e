//! The report as tables with a row for each request, step, idle interval, device and name. Each column is defined once, and appears under its name in CSV and
//! in Parquet. The columns of requests are also members of the JSON.

mod column;
mod tables;

pub use column::{FigureColumn, FigureValue, Getter, TableRow};
pub use tables::*;

#[cfg(test)]
mod tests {
    use crate::{IdleCause, RequestStatus, RowKind};

    #[test]
    fn names_are_those_of_the_json() {
        for cause in IdleCause::ALL {
            assert_eq!(cause.name(), serde_json::json!(cause));
        }
        use RequestStatus::{Aborted, Failed, Ok, Unfinished};
        for status in [Ok, Aborted, Failed, Unfinished] {
            assert_eq!(status.name(), serde_json::json!(status));
        }
        use RowKind::{Async, Region, Thread, Track};
        for kind in [Thread, Async, Track, Region] {
            assert_eq!(kind.name(), serde_json::json!(kind));
        }
    }
}
