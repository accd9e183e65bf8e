//! Extra lanes for spans that overlap others of their thread.

pub(crate) mod assign;
pub(crate) mod moves;
pub(crate) mod outcasts;
pub(crate) mod rows;
