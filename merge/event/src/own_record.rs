//! The format's own records among the events.

use crate::event::Event;
use sa_recorder::format::{
    ANCHOR_RECORD, BLOCK_RECORD, END_RECORD, FRAGMENT_RECORD, REMOVED_RECORD, TRACK_RECORD,
};

/// The records that the trace leaves out.
const OWN_RECORDS: [&str; 6] = [
    FRAGMENT_RECORD,
    ANCHOR_RECORD,
    REMOVED_RECORD,
    BLOCK_RECORD,
    END_RECORD,
    TRACK_RECORD,
];

/// Tells whether an event is one of the format's own records, which the trace leaves out.
#[inline]
pub fn is_left_out(event: &Event<'_>) -> bool {
    event.is_metadata() && own_record(event).is_some()
}

/// Which of them an event is.
pub fn own_record(event: &Event<'_>) -> Option<&'static str> {
    let name = event.name();
    if !name.starts_with(b"sa_") {
        return None;
    }
    OWN_RECORDS.into_iter().find(|own| own.as_bytes() == name)
}
