//! The time of a name.

use crate::quantiles::Quantiles;
use crate::table::row_kind::RowKind;
use serde::Serialize;

/// What the slices of one name took. The columns are those of [yappi](https://github.com/sumerc/yappi), on the wall clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameTime {
    /// The process, by its number among [`Recorded::processes`](crate::Recorded::processes), if each is counted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<usize>,
    /// The thread or the request, if each is counted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the slices lie on.
    pub row_kind: RowKind,
    /// The category, empty if there is none.
    pub category: String,
    /// The name.
    pub name: String,
    /// How many slices there are.
    pub ncall: u64,
    /// How many of them lie in no other one of the same name on their row.
    pub ncall_outermost: u64,
    /// What those took, in ns.
    pub ttot_ns: i64,
    /// What all of them took without the slices in them, which may have any name.
    pub tsub_ns: i64,
    /// `ttot_ns` over `ncall`.
    pub tavg_ns: f64,
    /// The same two on the clock of the thread's CPU time, of the slices where that was recorded (`SA_PROFILE_CPU=1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttot_cpu_ns: Option<i64>,
    /// See there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsub_cpu_ns: Option<i64>,
    /// Durations of all of them.
    pub duration: Quantiles,
    /// How many slices there were at once, if that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// Spans of the name that have no end; no time of theirs is counted.
    pub unfinished: u64,
    /// Slices that end after one in which they began, as no calls do: the self time of the other ones counts them up to its end.
    pub crossing: u64,
}
