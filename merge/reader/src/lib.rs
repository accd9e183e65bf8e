//! One way to read what recorders and other profilers left.
//!
//! In: paths. Out: recordings ([`fragment`], [`foreign`]), what their lines hold ([`summary`]), and three readers above them: [`survey`] counts what a run
//! has recorded so far, [`snapshot`] copies it aside, and [`follow`] reads it as it grows. A merge reads recordings too, to their end.
//!
//! Nothing here writes to a run, except for [`fragment::settle`]. Damage is a value with a place, never an error.

pub mod device;
pub mod error;
pub mod follow;
pub mod foreign;
pub mod fragment;
pub mod placed_event;
pub mod snapshot;
pub mod summary;
pub mod survey;

use trace_align as align;
use trace_base as base;
use trace_event as event;
use trace_store as store;
