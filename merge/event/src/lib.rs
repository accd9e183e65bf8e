//! One line of a trace: an event parsed, patched, mended, or damage.
//!
//! In: bytes of a file, cut at newlines ([`scan`]). Out: an [`Event`], which says where its members stand and copies nothing, or the kind of [`damage`] that
//! the line is.
//!
//! The module [`json`] finds the members, [`member`] says which values viewers take of each, and [`line`](mod@line) puts both together. [`mend`] takes out
//! what viewers do not take, and [`patch`] writes the line with other times and ids. Of an event, [`edges`] says whether it lies in a window, [`era`] whether
//! its time can be, [`loss`] what a recorder lost, and [`collective`] which slices of several devices belong together.
//! Lines in an order that is known are read by shorter ways (`canonical`, `pypto`, [`prefix_cache`]), which find the same.
//!
//! It never panics, whatever the bytes: what is no event is counted with its kind and place.
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
