//! Reads what recorders and other profilers wrote.
//!
//! In: paths. Out: recordings ([`fragment`], [`foreign`]) and summaries of their lines ([`summary`]). Three readers build on them: [`survey`] counts
//! what a run has recorded so far, [`snapshot`] copies a run to another directory, and [`follow`] reads it while it grows. A merge uses the same
//! recordings and reads them to their end.
//!
//! Only [`fragment::settle`] writes to a run. Damage is a value with a location, never an error.

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
