//! The flows that the program draws for its requests, which the merge continues on threads where the program draws nothing.

pub(super) mod first_spans;
pub(super) mod styles;
