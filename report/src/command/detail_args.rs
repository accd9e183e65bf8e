//! The arguments that choose one request, step or moment.

use crate::table::DetailOf;
use clap::Args;
use std::time::Duration;
use trace_merge::{EventOptions, parse_duration};

/// Options whose output covers many requests.
const OTHERS: [&str; 5] = ["names", "bottlenecks", "csv", "export", "html"];

/// The requested step or moment. A request comes from the filter of that name.
#[derive(Args, Clone, Debug)]
pub(super) struct DetailArgs {
    /// One step on one screen, by the number in its spans' args `step` or `batch`
    #[arg(long, value_name = "N", conflicts_with_all = OTHERS, conflicts_with_all = ["at", "request"])]
    step: Option<u64>,
    /// One moment on one screen, counted from the start of the trace
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = OTHERS, conflicts_with = "request")]
    at: Option<Duration>,
}

impl DetailArgs {
    /// Returns the requested part of the run. A single request is removed from the filter, because the screen compares it with the others. With `is_list`, the
    /// filter stays.
    pub(super) fn detail(&self, events: &mut EventOptions, is_list: bool) -> Option<DetailOf> {
        let requests = &mut events.filter.requests;
        match requests.len() {
            1 if !is_list => requests.pop().map(DetailOf::Request),
            _ => {
                let ns = |at: Duration| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
                let step = self.step.map(DetailOf::Step);
                step.or_else(|| Some(DetailOf::Time(ns(self.at?))))
            }
        }
    }
}
