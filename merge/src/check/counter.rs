//! The values of a counter.

use serde_json::{Map, Value};

/// How many of the values in `args` are no numbers; without any, one.
pub(super) fn bad_values(args: &[u8]) -> u64 {
    let Ok(values) = serde_json::from_slice::<Map<String, Value>>(args) else {
        return 1;
    };
    let is_number = |value: &Value| match value {
        Value::String(text) => text.parse::<f64>().is_ok(),
        _ => value.is_number(),
    };
    let bad = values.values().filter(|value| !is_number(value)).count();
    bad.max(usize::from(values.is_empty())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_no_number() {
        let table = [
            (r#"{"a":1,"b":2.5,"c":"4.5"}"#, 0),
            (r#"{"a":1,"b":"x","c":true,"d":null}"#, 3),
            ("{}", 1),
            ("", 1),
            ("3", 1),
        ];
        for (args, bad) in table {
            assert_eq!(bad_values(args.as_bytes()), bad, "{args}");
        }
    }
}
