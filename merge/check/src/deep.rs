//! Whether a value is JSON, with a stack of its own: the other readers stop at some depth.

use trace_event::json::Scanner;

/// Whether a value is JSON, however deep it goes.
pub(super) fn is_json(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text, 0);
    let mut open = Vec::new();
    is_deep_json(&mut scanner, &mut open).is_some() && scanner.at == text.len()
}

fn is_deep_json(scanner: &mut Scanner<'_>, open: &mut Vec<u8>) -> Option<()> {
    loop {
        let byte = scanner.peek();
        if !matches!(byte, b'{' | b'[') {
            scanner.value(1)?;
        } else if begins(scanner, byte)? {
            open.push(byte);
            continue;
        }
        while let Some(outer) = open.last() {
            scanner.space();
            if scanner.peek() == b',' {
                scanner.at += 1;
                scanner.space();
                key_in(scanner, *outer)?;
                break;
            }
            scanner.expect(closer(*outer))?;
            open.pop();
        }
        if open.is_empty() {
            return Some(());
        }
    }
}

/// Goes into an object or array; false if it is empty, and already left.
fn begins(scanner: &mut Scanner<'_>, byte: u8) -> Option<bool> {
    scanner.at += 1;
    scanner.space();
    if scanner.peek() == closer(byte) {
        scanner.at += 1;
        return Some(false);
    }
    key_in(scanner, byte)?;
    Some(true)
}

/// The key of a member, if `outer` is an object.
fn key_in(scanner: &mut Scanner<'_>, outer: u8) -> Option<()> {
    if outer == b'{' {
        scanner.string()?;
        scanner.space();
        scanner.expect(b':')?;
        scanner.space();
    }
    Some(())
}

fn closer(opener: u8) -> u8 {
    if opener == b'{' { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn takes_json_of_any_depth_and_nothing_else() {
        let nested = |levels| "[".repeat(levels) + &"]".repeat(levels);
        for levels in [1, 127, 128, 100_000] {
            assert!(is_json(nested(levels).as_bytes()), "{levels}");
        }
        assert!(!is_json((nested(200) + "]").as_bytes()));
        for text in [
            r#"{"a":[1,{},[],{"b":{"c":null}}],"d":"\u00e9"}"#,
            "{\"a\" : [ 1 , 2 ] , \"b\":{ } }",
            "[1,]",
            "[,1]",
            "{\"a\":1,}",
            "{\"a\"}",
            "[1}",
            "{\"a\":NaN}",
            "[\"\t\"]",
            "{\"a\":1",
            "",
        ] {
            let is_value = serde_json::from_str::<Value>(text).is_ok();
            assert_eq!(is_json(text.as_bytes()), is_value, "{text}");
        }
    }
}
