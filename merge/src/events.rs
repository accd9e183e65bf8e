//! The events of a run, of fragments or of any Chrome trace, for programs that evaluate them.
//!
//! [`read`] does everything that a merge does, except that it writes no trace, and passes
//! [`TraceEvents`] to a function. Its events are those of the trace: damage is left out, times are
//! on the common axis, ids are those of the trace, and overlapping spans have lanes of their own.
//! [`merge_and_read`] also writes the trace, in the same run over the inputs.
//!
//! This computes the total time for each name, in parallel and in bounded memory:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::time::Duration;
//! use trace_merge::{Error, Options, Progress, events};
//!
//! let options = Options {
//!     settle: false, // leave the run as it is
//!     ..Options::new(["profile_out".into()])
//! };
//! let (totals, report) = events::read(&options, &Progress::default(), |events| {
//!     let mut totals: BTreeMap<String, Duration> = BTreeMap::new();
//!     events.match_spans()?;
//!     events.fold(
//!         BTreeMap::<String, u64>::new,
//!         |of_chunk, event| {
//!             if let Some(end_ns) = event.end_ns() {
//!                 let total = of_chunk.entry(event.name().into_owned()).or_default();
//!                 *total += end_ns.abs_diff(event.ts_ns);
//!             }
//!         },
//!         |of_chunk| {
//!             for (name, ns) in of_chunk {
//!                 *totals.entry(name).or_default() += Duration::from_nanos(ns);
//!             }
//!             Ok(())
//!         },
//!     )?;
//!     Ok(totals)
//! })?;
//! println!("{} events lost, {} damaged places", report.losses.events, report.damage.total);
//! println!("{totals:#?}");
//! # Ok::<(), Error>(())
//! ```

mod devices;
mod thread_index;
mod trace_events;

pub use crate::reader::placed_event::{PlacedEvent, TraceThread};
pub use devices::{Devices, EventUse, Work};
pub use trace_events::{TraceEvents, TraceProcess};

use crate::app::merge::{Outcome, run};
use crate::base::progress::Progress;
use crate::{Error, Options, Report};

/// Reads the events of the inputs without writing a trace; options for the trace's file are
/// ignored. An input that changes in the meantime is damage of kind `changed`.
///
/// The fragments of dead processes are settled afterwards, as after a merge, unless
/// `options.settle` is false. Requests are not linked: [`Report::links`] is `None`.
///
/// # Errors
/// Returns the errors of [`merge`](crate::merge) and those of `read`. Rejects
/// [`Mode::Verbatim`](crate::Mode::Verbatim), because its lines have no common axis.
pub fn read<T>(
    options: &Options,
    progress: &Progress,
    read: impl FnMut(&mut TraceEvents<'_>) -> Result<T, Error>,
) -> Result<(T, Report), Error> {
    read_and(Outcome::Events, options, progress, read)
}

/// Reads events like [`read`], and writes the trace together with the tracks that `read`
/// [adds](TraceEvents::add).
///
/// # Errors
/// Returns the same errors as [`read`].
pub fn merge_and_read<T>(
    options: &Options,
    progress: &Progress,
    read: impl FnMut(&mut TraceEvents<'_>) -> Result<T, Error>,
) -> Result<(T, Report), Error> {
    read_and(Outcome::Trace, options, progress, read)
}

fn read_and<T>(
    outcome: Outcome,
    options: &Options,
    progress: &Progress,
    mut read: impl FnMut(&mut TraceEvents<'_>) -> Result<T, Error>,
) -> Result<(T, Report), Error> {
    if options.is_verbatim() {
        let why =
            "events cannot be read in verbatim mode, because the lines have no common time axis";
        return Err(Error::Usage(why.to_owned()));
    }
    run(outcome, options, progress, |decided| {
        let mut events = TraceEvents::new(decided);
        let value = read(&mut events)?;
        Ok((value, events.into_addition()))
    })
}
