//! Extra lanes for spans that overlap others of their thread.

pub(crate) mod assign;
pub(crate) mod lane_stacks;
pub(crate) mod move_finder;
pub(crate) mod moves;
