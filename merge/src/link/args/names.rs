//! The names of args that hold ids of requests, an id or a list of ids: the only list of them.

use crate::event::mend::from_slice;
use serde_json::{Map, Value};

/// Who knows an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdKey {
    /// The processes of the engine.
    Inside,
    /// The client.
    Outside,
}

/// What every one of the names has in it, and what then stands before that.
pub(crate) const NEEDLE: &[u8] = b"_id";
pub(crate) const BEFORE: [&[u8]; 3] = [b"request", b"ternal", b"_req"];

/// What the name of an arg says of its ids; `None` if it is not known to hold any.
pub(crate) fn known(name: &[u8]) -> Option<IdKey> {
    let one = name.strip_suffix(b"s").unwrap_or(name);
    match one {
        b"request_id" | b"internal_id" | b"internal_request_id" | b"internal_req_id" => {
            Some(IdKey::Inside)
        }
        b"external_id" | b"external_request_id" | b"external_req_id" => Some(IdKey::Outside),
        _ => None,
    }
}

/// Returns the ids in the args of an event, and who knows each of them. An id is a text, or a number as it is written.
pub(crate) fn ids_in(args: &[u8]) -> Vec<(IdKey, String)> {
    let args: Map<String, Value> = from_slice(args).unwrap_or_default();
    let mut found = Vec::new();
    for (name, value) in args {
        let Some(known) = known(name.as_bytes()) else {
            continue;
        };
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let id = |value| match value {
            Value::String(id) => Some((known, id)),
            Value::Number(id) => Some((known, id.to_string())),
            _ => None,
        };
        found.extend(values.into_iter().filter_map(id));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_searched_for() {
        let names = [
            "request_id",
            "internal_id",
            "internal_request_id",
            "internal_req_id",
            "external_id",
            "external_request_id",
            "external_req_id",
        ];
        for name in names {
            let at = name.rfind("_id").unwrap();
            let before = &name.as_bytes()[..at];
            assert!(BEFORE.iter().any(|word| before.ends_with(word)), "{name}");
            let (one, list) = (known(name.as_bytes()), known(format!("{name}s").as_bytes()));
            assert!(one.is_some() && one == list, "{name}");
        }
        for other in ["id", "req_id", "parent_request_id", "request_idss", "s", ""] {
            assert_eq!(known(other.as_bytes()), None, "{other}");
        }
    }
}
