//! Which event it is.

/// An event by its chunk and its number among the chunk's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventRef {
    pub(crate) chunk: u32,
    pub(crate) nth: u32,
}

impl EventRef {
    /// Of nothing.
    pub(crate) const NONE: EventRef = EventRef { chunk: 0, nth: 0 };
}
