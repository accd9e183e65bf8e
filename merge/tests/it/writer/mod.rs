//! Writes fragments and rings byte by byte from FORMAT.md alone; nothing of the recorder is used.

pub(crate) mod fragment;
pub(crate) mod line;
pub(crate) mod ring;

pub(crate) use fragment::{Fragment, Process};
pub(crate) use ring::{Lane, Open, Ring, Slot};
