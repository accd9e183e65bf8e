//! The values of a counter.

use super::loose::Members;
use trace_event::member::is_counter_value;

/// How many of the values in `args` are no numbers; without any, one. `None` if one cannot be read.
pub(super) fn bad_values(args: &[u8]) -> Option<u64> {
    let Ok(mut values) = Members::open(args) else {
        return Some(1);
    };
    let (mut count, mut bad) = (0_u64, 0);
    loop {
        match values.member() {
            Ok(Some((_, value))) => bad += u64::from(!is_counter_value(value.of(args))),
            Ok(None) => break,
            Err(_) => return None,
        }
        count += 1;
    }
    Some(bad.max(u64::from(count == 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_no_number() {
        let table = [
            (r#"{"a":1,"b":2.5,"c":"4.5"}"#, Some(0)),
            (r#"{"a":1,"b":"x","c":true,"d":null}"#, Some(3)),
            (r#"{"a":[1],"b":{"c":NaN},"d":1}"#, Some(2)),
            (r#"{"a":1,"b":NaN}"#, None),
            (r#"{"a":1e999,"b":1}"#, None),
            ("{}", Some(1)),
            ("", Some(1)),
            ("3", Some(1)),
        ];
        for (args, bad) in table {
            assert_eq!(bad_values(args.as_bytes()), bad, "{args}");
        }
    }
}
