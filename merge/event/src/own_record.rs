//! The format's own records among the events.

use crate::event::Event;
use sa_format::{Anchor, BlockHeader, End, FragmentHeader, Record, RemovedStreams, TrackRecord};

/// The records that the trace leaves out.
const OWN_RECORDS: [&str; 6] = [
    FragmentHeader::NAME,
    Anchor::NAME,
    RemovedStreams::NAME,
    BlockHeader::NAME,
    End::NAME,
    TrackRecord::NAME,
];

/// Returns true if an event is one of the format's own records, which the trace leaves out.
#[inline]
pub fn is_left_out(event: &Event<'_>) -> bool {
    event.is_metadata() && own_record(event).is_some()
}

/// Returns the name of the own record that an event is, if it is one.
pub fn own_record(event: &Event<'_>) -> Option<&'static str> {
    let name = event.name();
    if !name.starts_with(b"sa_") {
        return None;
    }
    OWN_RECORDS.into_iter().find(|own| own.as_bytes() == name)
}
