//! Parses, patches and mends single lines of a trace.
//!
//! In: bytes of a file, split at newlines ([`scan`]). Out: for each line an [`Event`], which refers to the members in the line without copying them, or a kind
//! of [`damage`].
//!
//! The module [`json`] finds the members, [`member`] defines the values of each that viewers accept, and [`line`](mod@line) uses both to parse a line.
//! [`mend`] removes what viewers refuse, and [`patch`] writes the line with other times and ids. [`edges`] tests if an event is in a window, and [`era`] if its
//! time is plausible. [`loss`] collects what a recorder lost, and [`collective`] finds the slices of several devices that belong together. There are faster
//! parsers for lines with a known order of keys (`canonical`, `pypto`, [`prefix_cache`]). They return the same events.
//!
//! This crate never panics, whatever the bytes. A line that is not an event is reported as damage with its kind and offset.
//!
//! ```
//! use trace_event::damage::Kind;
//! use trace_event::line::parse;
//!
//! let line = br#"{"ph":"X","pid":7,"tid":8,"ts":1.5,"dur":2,"name":"step"}"#;
//! let event = parse(line).map_err(Kind::name)?;
//! assert_eq!((event.ts_ns, event.dur_ns), (1_500, 2_000));
//! assert_eq!(event.name(), b"step");
//! assert_eq!(parse(b"{\"ph\":"), Err(Kind::BadJson));
//! # Ok::<(), &str>(())
//! ```

mod canonical;
pub mod collective;
pub mod damage;
pub mod edges;
pub mod era;
mod event;
pub mod event_mask;
pub mod flow;
pub mod json;
pub mod line;
pub mod loss;
pub mod member;
pub mod mend;
pub mod patch;
pub mod prefix_cache;
mod profile;
mod pypto;
#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;
pub mod scan;
pub mod verbatim;
pub mod whole;

pub use event::{Event, What};
