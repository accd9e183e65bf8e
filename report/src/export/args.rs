//! Args of an event.

use trace_merge::events::PlacedEvent;

/// An arg that is a whole number.
pub(super) fn count(event: &PlacedEvent<'_>, name: &str) -> Option<u64> {
    serde_json::from_slice(event.arg(name)?).ok()
}
