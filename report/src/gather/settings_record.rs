//! Settings of an engine, as its process recorded them.

use crate::table::setting;
use sa_format::visible;
use serde_json::Value;
use std::collections::BTreeMap;
use trace_merge::events::PlacedEvent;

/// Maximum length of a value as JSON, in bytes.
const MAX_VALUE_BYTES: usize = 4096;
/// Maximum length of a text, in characters.
const MAX_TEXT_CHARS: usize = 64;

/// Returns the settings in an `engine_settings` record. A trace may come from anywhere, so only known names with short,
/// flat values are accepted.
pub(crate) fn settings(event: &PlacedEvent<'_>) -> BTreeMap<String, Value> {
    let value = |name: &&'static str| {
        let json = event.arg(name)?;
        let value = (json.len() <= MAX_VALUE_BYTES).then(|| serde_json::from_slice(json).ok())?;
        Some(((*name).to_owned(), plain(value?)?))
    };
    setting::ALL.iter().filter_map(value).collect()
}

/// Returns a setting's value if it is a whole number, a boolean, a short text or a list of whole numbers, else `None`.
fn plain(value: Value) -> Option<Value> {
    let is_whole = |value: &Value| value.is_u64() || value.is_i64();
    match value {
        Value::String(text) => (text.chars().count() <= MAX_TEXT_CHARS)
            .then(|| Value::String(visible(&text).into_owned())),
        Value::Array(values) => values.iter().all(is_whole).then_some(Value::Array(values)),
        value => (value.is_boolean() || is_whole(&value)).then_some(value),
    }
}
