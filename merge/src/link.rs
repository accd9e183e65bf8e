//! Links requests whose recorders write no flows: draws a flow from the first event with a
//! request's id to the last one, across processes and hosts.
//!
//! Input: the args `request_id`, `request_ids` and similar names (listed and found by
//! [`args::candidates`], read by [`args::ids`]). Output: flow events directly after the lines of
//! the events they bind to.
//!
//! The first pass ([`gather`]) records the positions of the first and the last event of each id.
//! Between the passes ([`resolve`]), ids that differ only by what an engine adds ([`args::form`])
//! become one. The second pass ([`write`](mod@write)) looks up the ids of each event ([`table`]).

pub(crate) mod aliases;
mod args;
mod batch;
mod collector;
mod gather;
mod links;
mod mention;
mod program;
mod records;
mod requests;
mod resolve;
mod table;
mod write;

pub(crate) use aliases::SelectedIds;
pub(crate) use args::candidates::{IdOwner, ids_in};
pub(crate) use collector::Collector;
pub use links::LinkReport;
pub(crate) use links::Links;
pub use program::styles::LooseFlows;
pub(crate) use table::{LinkedEvents, Lookup};
pub(crate) use write::Linker;
