//! The selection of events to show: windows and filters.

pub(crate) mod filter;
pub(crate) mod flow_enclosure;
pub(crate) mod marker;
pub(crate) mod segments;
pub(crate) mod selection;
pub(crate) mod selection_args;
pub(crate) mod window;
