//! How a recorder is measured, and the recorders that ours is measured beside.
//!
//! A recorder is one per process, so each case is a child process. In it [`rounds::run`] takes the floor (two clock reads) directly before and
//! after the case in the same threads, so that what else the machine does weighs on both, and [`tail::Paced`] times single spans at a steady
//! pace. A recorder is a [`Peer`]: it does a [`Kind`] of event once per step, and a [`Beat`] says what happens around each step.

pub mod clock;
mod kind;
pub mod neighbour;
pub mod peer;
pub mod quantile;
pub mod rounds;
mod scratch;
pub mod tail;

pub use kind::{Beat, Free, Kind};
pub use peer::Peer;
pub use scratch::{Scratch, warm_page_cache};
