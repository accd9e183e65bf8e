//! Where the events of a chunk come from.

/// What tells the same texts of different recordings apart, and which clock their times are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkOrigin {
    pub(super) source: usize,
    /// Combined with each key: 0 but for runs that are kept apart.
    pub(super) scope: u64,
    pub(super) clock: u32,
    pub(super) recording: usize,
    /// True for our own recordings. Flows of other profilers mean other things, so they are not checked for a start and an end.
    pub(super) is_ours: bool,
}

/// Which requests the ids of a source mean, and where its times belong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkedSource {
    pub(super) number: usize,
    pub(super) recording: usize,
    pub(super) scope: u64,
    /// What is added to its times.
    pub(super) shift_ns: i64,
}
