//! Command-line arguments that select the events to show.

use crate::select::filter::Filter;
use crate::{EventOptions, Moment, Window, parse_around, parse_duration, parse_moment};
use clap::{ArgGroup, Args};
use std::time::Duration;

/// The events of a run to show.
#[derive(Args, Clone, Debug, Default)]
pub struct SelectionArgs {
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Args, Clone, Debug, Default)]
#[group(id = "window", multiple = true)]
#[command(next_help_heading = "Part of the run")]
#[command(group = ArgGroup::new("edges").args(["from", "to", "around"]).multiple(true))]
struct WindowArgs {
    /// Only the last part of the run, such as 30s, 500ms or 2m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["from", "to", "around"])]
    last: Option<Duration>,
    /// Only from this time: 12.5s into the run, or 2026-11-22T07:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    from: Option<Moment>,
    /// Only up to this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    to: Option<Moment>,
    /// Only around a time: 12.5s±1s, or 12.5s+-1s [default: ±5s]
    #[arg(long, value_name = "TIME[±DURATION]", value_parser = parse_around, conflicts_with_all = ["from", "to"])]
    around: Option<(Moment, Duration)>,
    /// Search for spans this far after the window [default: as needed]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "last", requires = "edges", hide_short_help = true)]
    reach: Option<Duration>,
}

impl SelectionArgs {
    /// Returns the merge options for the time window and the filter on the command line.
    pub fn events(&self) -> EventOptions {
        EventOptions {
            window: self.window.window(),
            filter: self.filter.clone(),
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
