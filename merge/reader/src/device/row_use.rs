//! The part that the events of a row have in the work of a device.

/// The part that the events of a row have in the work of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowUse {
    /// A row of the host.
    #[default]
    Host,
    /// All events are work.
    Work,
    /// Events are work if their category says so.
    ByCategory,
    /// Tasks of an NPU: all are work, except for tasks that only wait for an event, record or reset one, or mark a place.
    Tasks {
        /// False if the collectives have rows of their own.
        shows_collectives: bool,
    },
    /// Whole collectives.
    Collectives,
    /// Parts of collectives.
    CollectiveParts,
    /// Sampled launches: work, except while another trace has all kernels.
    Sampled,
    /// Regions: annotations, steps, or rows that repeat the work or were computed from it.
    Regions,
}
