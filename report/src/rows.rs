//! The report as tables with a row for each request, step, idle interval, device and name. Each column is defined once, and appears under its name in CSV and
//! in Parquet. The columns of requests are also members of the JSON.

mod column;
mod device;
mod idle_interval;
mod name;
mod request;
mod row_sink;
mod step;

pub use column::{FigureColumn, FigureValue, Getter, TableRow};
pub use device::DeviceRow;
pub use idle_interval::IdleInterval;
pub use row_sink::RowSink;
pub use step::{StepRole, StepRow};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IdleCause, NameTime, Request, RequestStatus, RowKind};
    use std::collections::BTreeSet;

    fn check<R: TableRow>() {
        let mut names = BTreeSet::new();
        for column in R::COLUMNS {
            assert!(names.insert(column.name), "{} {}", R::TABLE, column.name);
            let is_us = matches!(column.getter, Getter::Us(_) | Getter::RealUs(_));
            assert_eq!(column.name.ends_with("_us"), is_us, "{}", column.name);
        }
    }

    #[test]
    fn names_are_those_of_the_json() {
        for cause in IdleCause::ALL {
            assert_eq!(cause.name(), serde_json::json!(cause));
        }
        for kind in [
            RowKind::Thread,
            RowKind::Async,
            RowKind::Track,
            RowKind::Region,
        ] {
            assert_eq!(kind.name(), serde_json::json!(kind));
        }
        for status in [
            RequestStatus::Ok,
            RequestStatus::Aborted,
            RequestStatus::Failed,
            RequestStatus::Unfinished,
        ] {
            assert_eq!(status.name(), serde_json::json!(status));
        }
    }

    #[test]
    fn names_of_columns_have_units() {
        check::<Request>();
        check::<StepRow>();
        check::<IdleInterval>();
        check::<DeviceRow>();
        check::<NameTime>();
    }
}
