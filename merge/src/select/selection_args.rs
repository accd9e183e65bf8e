//! The arguments of a command line that say which events of a run are shown.

use crate::select::filter::Filter;
use crate::{EventOptions, Moment, Window, parse_around, parse_duration, parse_moment};
use clap::{ArgGroup, Args};
use std::time::Duration;

/// Which events of a run are shown.
#[derive(Args, Clone, Debug, Default)]
pub struct SelectionArgs {
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[group(id = "window", multiple = true)]
#[command(next_help_heading = "Part of the run")]
#[command(group = ArgGroup::new("edges").args(["from", "to", "around"]).multiple(true))]
struct WindowArgs {
    /// Only the last part of the run, such as 30s, 500ms or 2m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["from", "to", "around"])]
    last: Option<Duration>,
    /// Only from here on: 12.5s into the run, or 2026-11-22T07:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    from: Option<Moment>,
    /// Only up to here
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    to: Option<Moment>,
    /// Only around a time: 12.5s±1s, or 12.5s+-1s [default: ±5s]
    #[arg(long, value_name = "TIME[±DURATION]", value_parser = parse_around, conflicts_with_all = ["from", "to"])]
    around: Option<(Moment, Duration)>,
    /// Search spans this far after the window [default: as needed]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "last", requires = "edges", hide_short_help = true)]
    reach: Option<Duration>,
}

/// The arguments of a command line that choose events by what they are, whenever they were.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "filter", multiple = true)]
#[command(next_help_heading = "Filters (an event must match one value of each option given)")]
pub struct FilterArgs {
    /// Only this process, by its recorded id or the one in the trace
    #[arg(long, value_name = "N")]
    pid: Vec<i64>,
    /// Only processes with this in their names; 'Worker*' is a pattern
    #[arg(long, value_name = "NAME")]
    process: Vec<String>,
    /// Only events of this name, or pattern such as 'execute_*'
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only events of this category
    #[arg(long, value_name = "NAME")]
    cat: Vec<String>,
    /// Only events with the id of this request, or a longer form of it
    #[arg(long, value_name = "ID")]
    request: Vec<String>,
}

impl SelectionArgs {
    /// Returns the options that show these events.
    pub fn events(&self) -> EventOptions {
        EventOptions {
            window: self.window.window(),
            filter: self.filter.filter(),
            ..EventOptions::default()
        }
    }
}

impl WindowArgs {
    fn window(&self) -> Window {
        let (from, to, reach) = (self.from, self.to, self.reach);
        match (self.last, self.around) {
            (Some(last), _) => Window::Last(last),
            (None, Some((moment, side))) => Window::Around {
                moment,
                side,
                reach,
            },
            (None, None) if from.is_none() && to.is_none() => Window::WholeRun,
            (None, None) => Window::Between { from, to, reach },
        }
    }
}

impl FilterArgs {
    /// Returns the filter that these arguments describe.
    pub fn filter(&self) -> Filter {
        Filter {
            pids: self.pid.clone(),
            processes: self.process.clone(),
            names: self.name.clone(),
            categories: self.cat.clone(),
            requests: self.request.clone(),
        }
    }
}
