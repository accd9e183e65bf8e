//! All events in the order of their times, for a trace that is sorted as a whole: where each stands, and where it goes. No text is kept: the
//! lines are read once more in that order.

pub(crate) mod order;
pub(crate) mod scribe;

mod notes;
