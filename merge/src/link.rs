//! Requests linked: a flow from the first event that carries a request's id to the last one, across processes and hosts, for recorders that write none.
//!
//! In: the args `request_id`, `request_ids` and their kin ([`names`], found by [`candidates`], read by [`ids`]). Out: flow events directly behind the lines of the
//! events they bind to. The first pass ([`gather`]) notes of each id where its first and its last event stand; between the passes ([`resolve`]) ids that differ
//! only by what an engine adds ([`form`]) become one; the second pass ([`write`]) looks its ids up ([`table`]).

pub(crate) mod aliases;
mod batch;
mod binding;
mod bloom;
mod buckets;
mod candidates;
mod canonical_id;
mod collector;
mod cursor;
mod fast_args;
mod form;
mod gather;
mod ids;
mod links;
mod list_cache;
mod names;
mod number;
mod origin;
mod partition;
mod prefetch;
mod records;
mod resolve;
mod table;
mod times;
mod write;

pub(crate) use collector::Collector;
pub(crate) use form::any_form;
pub use links::LinkReport;
pub(crate) use links::Links;
pub(crate) use names::{IdKey, known};
pub(crate) use table::Lookup;
pub(crate) use write::Linker;
