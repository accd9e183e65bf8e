//! Flows that the program draws for its requests. The merge continues them on threads where the
//! program draws nothing.

pub(super) mod first_spans;
pub(super) mod styles;
