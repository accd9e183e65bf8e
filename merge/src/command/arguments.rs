//! The arguments that say which events of a run are shown.

use clap::Args;
use std::time::Duration;
use trace_merge::{Filter, Moment, Options, parse_around, parse_duration, parse_moment};

/// Which events of a run are shown.
#[derive(Args)]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    window: Window,
    #[command(flatten)]
    filter: Filters,
}

#[derive(Args)]
#[group(id = "window", multiple = true)]
#[command(next_help_heading = "Part of the run")]
struct Window {
    /// Only the last part of the run, such as 30s, 500ms or 2m: what ended before it is left out, a span that reaches into it is whole
    /// and has `sa_cut` in its args, names and unfinished spans stay
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["from", "to", "around"])]
    last: Option<Duration>,
    /// Only what happened from this time on: from the start of the run, such as 12.5s, or a wall time, such as 2026-11-22T07:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    from: Option<Moment>,
    /// Only what happened up to this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    to: Option<Moment>,
    /// Only what happened around this time, such as 12.5s±1s, also written 12.5s+-1s [default: ±5s]
    #[arg(long, value_name = "TIME[±DURATION]", value_parser = parse_around, conflicts_with_all = ["from", "to"])]
    around: Option<(Moment, Duration)>,
    /// How far behind the window spans that reach into it are looked for [default: as far as any can be; 10s in large runs of older recorders]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "last")]
    reach: Option<Duration>,
}

#[derive(Args)]
#[group(id = "filter", multiple = true)]
#[command(
    next_help_heading = "Filters (each may be repeated; an event matches any of one kind, and all kinds)"
)]
struct Filters {
    /// Only this process: its process id, or the one it has in the whole trace
    #[arg(long, value_name = "N")]
    pid: Vec<i64>,
    /// Only processes with this in their names, or of a name that this pattern matches as a whole, such as 'Worker*'
    #[arg(long, value_name = "NAME")]
    process: Vec<String>,
    /// Only events of this name, or of one that this pattern matches, such as 'execute_*'
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only events of this category
    #[arg(long, value_name = "NAME")]
    cat: Vec<String>,
    /// Only events of this request: with its id, or what an engine makes of it, in `request_id`, `request_ids` or external and internal
    /// ids of their args, and the flows between them
    #[arg(long, value_name = "ID")]
    request: Vec<String>,
}

impl SelectionArgs {
    pub(crate) fn put_into(&self, options: &mut Options) {
        let SelectionArgs { window, filter } = self;
        (options.last, options.around) = (window.last, window.around);
        (options.from, options.to) = (window.from, window.to);
        options.reach = window.reach;
        options.filter = Filter {
            pids: filter.pid.clone(),
            processes: filter.process.clone(),
            names: filter.name.clone(),
            categories: filter.cat.clone(),
            requests: filter.request.clone(),
        };
    }
}
