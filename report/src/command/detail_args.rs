//! The arguments that choose one request, step or moment.

use crate::table::DetailTarget;
use clap::Args;
use std::time::Duration;
use trace_merge::{EventOptions, parse_duration};

/// Options whose output covers many requests. They conflict with the choice of one step or moment.
const OTHERS: [&str; 5] = ["names", "bottlenecks", "csv", "export", "html"];

/// The requested step or moment. A request is chosen by the filter `--request`.
#[derive(Args, Clone, Debug)]
pub(super) struct DetailArgs {
    /// Show one step, by the number in the arg `step` or `batch` of its spans
    #[arg(long, value_name = "N", conflicts_with_all = OTHERS, conflicts_with_all = ["at", "request"])]
    step: Option<u64>,
    /// Show one moment, counted from the start of the trace
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = OTHERS, conflicts_with = "request")]
    at: Option<Duration>,
}

impl DetailArgs {
    /// Returns the request, step or moment that the user chose, or `None` for a report on the run. If the filter in
    /// `events` names a single request, this function chooses it and removes it from the filter, because the screen of
    /// a request compares it with other requests. With `is_list`, the filter is unchanged, and no request is chosen.
    pub(super) fn detail(&self, events: &mut EventOptions, is_list: bool) -> Option<DetailTarget> {
        let requests = &mut events.filter.requests;
        match requests.len() {
            1 if !is_list => requests.pop().map(DetailTarget::Request),
            _ => {
                let ns = |at: Duration| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
                let step = self.step.map(DetailTarget::Step);
                step.or_else(|| Some(DetailTarget::Time(ns(self.at?))))
            }
        }
    }
}
