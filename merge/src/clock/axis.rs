//! The time axis of a run, and the position of requested windows on it.

use crate::align::Curve;
use crate::clock::clocks::Clocks;
use crate::clock::moment::{Moment, wall_text};
use crate::clock::time_map::TimeMap;
use crate::event::edges::Edges;
use crate::summary::chunk_summary::ChunkSummary;
use crate::{Error, Window};
use std::time::Duration;

/// The time axis of a run.
pub(crate) struct Axis {
    pub(crate) first_ns: i64,
    last_ns: i64,
    /// Curve from the axis to wall time.
    wall: Option<Curve>,
}

impl Axis {
    /// Creates the axis for all recordings. `summaries` have warped times wherever a map has a
    /// warp. Returns `None` if no event has a time.
    pub(crate) fn new(
        summaries: &[ChunkSummary],
        maps: &[TimeMap],
        clocks: &Clocks,
    ) -> Option<Axis> {
        let thread_ranges = |(summary, map): (&'_ ChunkSummary, &TimeMap)| {
            let activities = summary.threads.values();
            let timed = activities.filter(|activity| activity.first_ns != i64::MAX);
            let shifted = timed.map(|activity| activity.shifted(map.shift_ns));
            shifted.collect::<Vec<_>>()
        };
        let all: Vec<_> = summaries.iter().zip(maps).flat_map(thread_ranges).collect();
        Some(Axis {
            first_ns: all.iter().map(|activity| activity.first_ns).min()?,
            last_ns: all.iter().map(|activity| activity.last_ns).max()?,
            wall: clocks.wall().cloned(),
        })
    }

    /// Creates the axis before all events are known: only its begin and its wall time.
    pub(crate) fn from_first_events(
        firsts_ns: &[Option<i64>],
        maps: &[TimeMap],
        clocks: &Clocks,
    ) -> Option<Axis> {
        Some(Axis {
            first_ns: first_event_ns(firsts_ns, maps)?,
            last_ns: i64::MAX,
            wall: clocks.wall().cloned(),
        })
    }

    /// Returns the same axis, but begins it at the first of these events. Used if only a part of
    /// the run is read.
    pub(crate) fn beginning_at(self, firsts_ns: &[Option<i64>], maps: &[TimeMap]) -> Axis {
        Axis {
            first_ns: first_event_ns(firsts_ns, maps).unwrap_or(self.first_ns),
            ..self
        }
    }

    fn moment_ns(&self, option: &str, moment: Moment) -> Result<i64, Error> {
        match (moment, &self.wall) {
            (Moment::FromStart(after), _) => Ok(self.first_ns.saturating_add(ns(after))),
            (Moment::Wall(at), Some(wall)) => Ok(wall.back(at)),
            (Moment::Wall(_), None) => Err(Error::Usage(format!(
                "{option}: expected a time from the start such as 12.5s, because no fragment contains its wall time"
            ))),
        }
    }

    /// Formats a time of the axis as it can be given on the command line.
    fn time_text(&self, at_ns: i64) -> String {
        let after = at_ns.saturating_sub(self.first_ns);
        let sign = if after < 0 { "-" } else { "" };
        let after = Duration::from_nanos(after.unsigned_abs());
        let wall = self.wall.as_ref();
        let wall_time = wall.and_then(|wall| wall_text(wall.at(at_ns)));
        let wall = wall_time.map_or(String::new(), |time| format!(" ({time})"));
        format!("{sign}{}s{wall}", after.as_secs_f64())
    }

    /// Returns the edges of a window on the axis.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the window cannot be located, is empty, or is outside of the
    /// run.
    pub(crate) fn edges(&self, window: &Window) -> Result<Edges, Error> {
        let edges = self.unchecked_edges(window)?;
        match window {
            Window::Last(_) => Ok(edges),
            _ => self.check_range(edges),
        }
    }

    /// Returns the edges of a window without checking that they are within the run.
    pub(crate) fn unchecked_edges(&self, window: &Window) -> Result<Edges, Error> {
        let mut edges = Edges::OPEN;
        match *window {
            Window::WholeRun => {}
            Window::Last(last) => edges.from_ns = self.last_ns.saturating_sub(ns(last)),
            Window::Around { moment, side, .. } => {
                let at = self.moment_ns("--around", moment)?;
                edges.from_ns = at.saturating_sub(ns(side));
                edges.to_ns = at.saturating_add(ns(side));
            }
            Window::Between { from, to, .. } => {
                if let Some(from) = from {
                    edges.from_ns = self.moment_ns("--from", from)?;
                }
                if let Some(to) = to {
                    edges.to_ns = self.moment_ns("--to", to)?;
                }
            }
        }
        Ok(edges)
    }

    fn check_range(&self, edges: Edges) -> Result<Edges, Error> {
        let text = |at_ns| self.time_text(at_ns);
        if edges.from_ns > edges.to_ns {
            return Err(Error::Usage(format!(
                "expected a window that begins before it ends, found {} to {}",
                text(edges.from_ns),
                text(edges.to_ns)
            )));
        }
        let (found, verb) = match edges {
            Edges { from_ns, .. } if from_ns > self.last_ns => (from_ns, "begins at"),
            Edges { to_ns, .. } if to_ns < self.first_ns => (to_ns, "ends at"),
            edges => return Ok(edges),
        };
        Err(Error::Usage(format!(
            "expected a window within the run, which lasts from {} to {}; found one that {verb} {}",
            text(self.first_ns),
            text(self.last_ns),
            text(found)
        )))
    }
}

/// Returns the first event of all recordings, on the axis. `firsts_ns` are in each recording's own
/// time.
fn first_event_ns(firsts_ns: &[Option<i64>], maps: &[TimeMap]) -> Option<i64> {
    let on_axis = |(first, map): (&Option<i64>, &TimeMap)| Some(map.at((*first)?));
    firsts_ns.iter().zip(maps).filter_map(on_axis).min()
}

pub(crate) fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
