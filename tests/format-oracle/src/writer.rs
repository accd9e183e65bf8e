//! Writes fragments and rings byte by byte from FORMAT.md alone; nothing of the recorder is used.

pub mod fragment;
pub mod line;
pub mod ring;

pub use fragment::{Fragment, Process};
pub use ring::{Lane, Open, Ring, Slot};
