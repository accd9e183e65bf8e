//! Names.

use super::column::{FigureColumn, TableRow, count, figure, process, real_us, text, us};
use crate::table::NameTime;

impl TableRow for NameTime {
    const TABLE: &'static str = "name";
    const COLUMNS: &'static [FigureColumn<NameTime>] = &[
        process("process", "upid", |name| name.process),
        text("group_name", |name| name.group.as_deref()),
        text("row_kind", |name| Some(name.row_kind.name())),
        text("category", |name| Some(&name.category)),
        text("name", |name| Some(&name.name)),
        count("ncall", |name| Some(name.ncall)),
        count("ncall_outermost", |name| Some(name.ncall_outermost)),
        us("ttot_us", |name| Some(name.ttot_ns)),
        us("tsub_us", |name| Some(name.tsub_ns)),
        real_us("tavg_us", |name| (name.ncall > 0).then_some(name.tavg_ns)),
        us("ttot_cpu_us", |name| name.ttot_cpu_ns),
        us("tsub_cpu_us", |name| name.tsub_cpu_ns),
        us("min_us", |name| figure(&name.duration, |of| of.min_ns)),
        real_us("p50_us", |name| figure(&name.duration, |of| of.p50_ns)),
        real_us("p90_us", |name| figure(&name.duration, |of| of.p90_ns)),
        real_us("p99_us", |name| figure(&name.duration, |of| of.p99_ns)),
        us("max_us", |name| figure(&name.duration, |of| of.max_ns)),
        count("max_concurrency", |name| name.max_concurrency),
        count("unfinished", |name| Some(name.unfinished)),
        count("crossing", |name| Some(name.crossing)),
    ];

    fn process(&self) -> Option<usize> {
        self.process
    }
}
