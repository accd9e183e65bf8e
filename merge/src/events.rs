//! The events of a run, of fragments or of any Chrome trace, for programs that compute something from them.
//!
//! [`read`] does all that a merge does but for writing a trace, and hands [`TraceEvents`] to a function. Its events are those of the
//! trace: damage is gone, times lie on the common axis, ids are those of the trace, overlapping spans have rows of their own.
//! [`merge_and_read`] writes the trace as well, in the same run over the inputs.
//!
//! Total time per name, in parallel and in bounded memory:
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

/// Reads the events of the inputs; writes no trace, whatever the options say of it. An input that changes meanwhile is damage of kind `changed`.
///
/// The fragments of dead processes are settled afterwards, as after a merge, unless `options.settle` is false. Requests are not linked: [`Report::links`]
/// is `None`.
///
/// # Errors
/// As [`merge`](crate::merge), and the errors of `read`. [`Mode::Verbatim`](crate::Mode::Verbatim) is refused: its lines have no common axis.
pub fn read<T>(
    options: &Options,
    progress: &Progress,
    read: impl FnMut(&mut TraceEvents<'_>) -> Result<T, Error>,
) -> Result<(T, Report), Error> {
    read_and(Outcome::Events, options, progress, read)
}

/// Reads events as [`read`] does, and writes the trace with the rows that `read` [adds](TraceEvents::add).
///
/// # Errors
/// As [`read`].
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
        let why = "lines as they stand have no common axis to read events on";
        return Err(Error::Usage(why.to_owned()));
    }
    run(outcome, options, progress, |decided| {
        let mut events = TraceEvents::new(decided);
        let was_read = read(&mut events)?;
        Ok((was_read, events.into_addition()))
    })
}
