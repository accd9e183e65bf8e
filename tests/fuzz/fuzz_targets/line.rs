//! Parses one line. There is no panic, and the parser is at least as strict as serde_json when it skips values, and at most as strict as when it reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use trace_merge::Kind;
use trace_merge::line;

fuzz_target!(|data: &[u8]| {
    let parsed = line::parse(data);
    let utf8 = std::str::from_utf8(data);
    assert_eq!(matches!(parsed, Err(Kind::BadUtf8)), utf8.is_err(), "UTF-8");
    if let Ok(text) = utf8 {
        check_verdict(text, !matches!(parsed, Err(Kind::BadJson)));
    }
    if let (Ok(whole), Some(front)) = (parsed, line::parse_canonical(data))
        && !repeats_a_key(data)
    {
        assert_eq!(
            (front.phase, front.pid, front.tid),
            (whole.phase, whole.pid, whole.tid)
        );
        assert_eq!((front.ts_ns, front.dur_ns), (whole.ts_ns, whole.dur_ns));
    }
});

/// Asserts that the scanner accepts everything that serde_json reads into values, and nothing that serde_json cannot even skip. serde_json skips more than it reads: lone
/// surrogates, numbers beyond a double, any depth. `NaN` and `Infinity` are accepted as well, because other recorders write them.
fn check_verdict(text: &str, accepted: bool) {
    let strict = serde_json::from_str::<Map<String, Value>>(text).is_ok();
    assert!(accepted || !strict, "a good object was refused");
    let skipped = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_valid_without_odd_numbers =
        || serde_json::from_str::<IgnoredAny>(&without_odd_numbers(text)).is_ok();
    assert!(
        skipped || !accepted || is_valid_without_odd_numbers(),
        "a bad object was accepted"
    );
    let object = text
        .trim_start_matches([' ', '\t', '\r', '\n'])
        .starts_with('{');
    assert!(
        object || !accepted,
        "something other than an object was accepted"
    );
}

/// Returns the text with each `NaN`, `Infinity` and `-Infinity` outside strings replaced by 0.
fn without_odd_numbers(text: &str) -> String {
    let (mut out, mut rest, mut is_in_string) = (String::new(), text, false);
    while let Some(first) = rest.chars().next() {
        let odd = ["NaN", "Infinity", "-Infinity"];
        let odd = odd
            .into_iter()
            .find(|odd| !is_in_string && rest.starts_with(odd));
        let bytes = match (odd, first) {
            (Some(odd), _) => odd.len(),
            (None, '\\') if is_in_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => first.len_utf8(),
        };
        is_in_string ^= first == '"';
        out.push_str(if odd.is_some() { "0" } else { &rest[..bytes] });
        rest = &rest[bytes..];
    }
    out
}

/// Returns true if a key is repeated. The canonical reader uses the first value, the scanner the last. Our recorder never repeats a key.
fn repeats_a_key(line: &[u8]) -> bool {
    let keys = [
        &b"\"ph\""[..],
        b"\"pid\"",
        b"\"tid\"",
        b"\"ts\"",
        b"\"dur\"",
    ];
    let count = |key: &[u8]| {
        line.windows(key.len())
            .filter(|window| *window == key)
            .count()
    };
    keys.into_iter().any(|key| count(key) > 1)
}
