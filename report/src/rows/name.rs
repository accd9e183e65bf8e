//! Names.

use super::column::{FigureColumn, Getter, TableRow, column, count, figure};
use crate::table::name_time::NameTime;
use std::borrow::Cow;

impl TableRow for NameTime {
    const TABLE: &'static str = "name";
    const COLUMNS: &'static [FigureColumn<NameTime>] = &[
        column("process", Getter::Process("upid", |name| name.process)),
        column(
            "group_name",
            Getter::OptionalText(|name| name.group.as_deref()),
        ),
        column(
            "row_kind",
            Getter::Text(|name| Cow::from(name.row_kind.name())),
        ),
        column("category", Getter::Text(|name| Cow::from(&name.category))),
        column("name", Getter::Text(|name| Cow::from(&name.name))),
        column("ncall", Getter::Int(|name| count(name.ncall))),
        column(
            "ncall_outermost",
            Getter::Int(|name| count(name.ncall_outermost)),
        ),
        column("ttot_us", Getter::Us(|name| name.ttot_ns)),
        column("tsub_us", Getter::Us(|name| name.tsub_ns)),
        column(
            "tavg_us",
            Getter::OptionalRealUs(|name| (name.ncall > 0).then_some(name.tavg_ns)),
        ),
        column("ttot_cpu_us", Getter::OptionalUs(|name| name.ttot_cpu_ns)),
        column("tsub_cpu_us", Getter::OptionalUs(|name| name.tsub_cpu_ns)),
        column(
            "min_us",
            Getter::OptionalUs(|name| figure(&name.duration, |of| of.min_ns)),
        ),
        column(
            "p50_us",
            Getter::OptionalRealUs(|name| figure(&name.duration, |of| of.p50_ns)),
        ),
        column(
            "p90_us",
            Getter::OptionalRealUs(|name| figure(&name.duration, |of| of.p90_ns)),
        ),
        column(
            "p99_us",
            Getter::OptionalRealUs(|name| figure(&name.duration, |of| of.p99_ns)),
        ),
        column(
            "max_us",
            Getter::OptionalUs(|name| figure(&name.duration, |of| of.max_ns)),
        ),
        column(
            "max_concurrency",
            Getter::OptionalInt(|name| name.max_concurrency.map(count)),
        ),
        column("unfinished", Getter::Int(|name| count(name.unfinished))),
        column("crossing", Getter::Int(|name| count(name.crossing))),
    ];

    fn process(&self) -> Option<usize> {
        self.process
    }
}
