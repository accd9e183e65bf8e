//! Writes fragments and rings byte by byte, based on FORMAT.md alone. Uses no code of the recorder.

pub mod fragment;
pub mod line;
pub mod ring;

pub use fragment::{Fragment, Process};
pub use ring::{Lane, Open, Ring, Slot};
