//! The recording state of a thread: its place in the recorder, its open spans, and the writer of
//! its events.

pub(crate) mod event_writer;
pub(crate) mod open_span;
pub(crate) mod slot_writer;
pub(crate) mod thread_state;
