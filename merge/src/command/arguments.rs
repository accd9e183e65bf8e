//! What the arguments have in common.

/// Heading of the options that few need; `-h` leaves them out.
pub(super) const RARE: &str = "Rarely needed (docs/merge.md explains them)";
