//! The frame of the Chrome trace document around the event lines.

use serde_json::Value;

/// Everything before the first event.
pub(crate) fn document_head(other_data: &Value) -> Vec<u8> {
    format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{other_data},\"traceEvents\":[")
        .into_bytes()
}

/// Everything after the last event. No empty object: viewers count it as an error.
pub(crate) fn document_tail() -> &'static [u8] {
    b"\n]}\n"
}
