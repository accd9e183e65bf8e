//! Rows for spans that overlap others of their thread.

pub(crate) mod assign;
pub(crate) mod candidates;
pub(crate) mod moves;
mod row_move;
pub(crate) mod rows;
