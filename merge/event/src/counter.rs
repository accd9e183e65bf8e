//! The values of a counter, as far as viewers draw them.

use crate::json::Members;
use crate::member::is_counter_value;

/// Whether viewers draw all values in these args, and there are some.
pub(crate) fn is_drawn(args: &[u8]) -> bool {
    let mut values = Members::of(args);
    let is_good = |(_, value): (&[u8], &[u8])| is_counter_value(value);
    values.next().is_some_and(is_good) && values.by_ref().all(is_good) && values.is_at_end()
}

/// Whether a line that ends with the args of a counter has nothing in them but values that viewers draw. A line with a bracket in a name is left to
/// a closer look.
#[inline]
pub fn ends_drawn(line: &[u8]) -> bool {
    let args = memchr::memrchr(b'{', line).and_then(|start| line.get(start..line.len() - 1));
    args.is_some_and(is_drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_numbers() {
        for (args, expected) in [
            (r#"{"a":1}"#, true),
            (r#"{"a":-1.5,"b":"2","c":1e3}"#, true),
            ("{}", false),
            ("", false),
            ("1", false),
            ("[1]", false),
            (r#"{"a":1,"b":null}"#, false),
            (r#"{"a":1e999}"#, false),
        ] {
            assert_eq!(is_drawn(args.as_bytes()), expected, "{args}");
            let line = format!(r#"{{"ph":"C","args":{args}}}"#);
            assert_eq!(ends_drawn(line.as_bytes()), expected, "{line}");
        }
        assert!(!ends_drawn(br#"{"ph":"C","id2":{"other":1},"name":"a"}"#));
    }
}
