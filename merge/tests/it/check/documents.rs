//! Files that are no trace, or not quite. Whatever `--check` calls loadable, the trace processor loads.

use super::{found, put, report, span};
use crate::perfetto::loads;
use serde_json::json;

/// Text with `@` for an event, the rule that it breaks, and what is said of it.
const DOCUMENTS: [(&str, &str, &str); 38] = [
    (r#"{"traceEvents":[@]}"#, "", ""),
    (r#"{"traceEvents":[]}"#, "", ""),
    (
        r#"{"a":[NaN,1"#,
        "not_json",
        "expected value at line 1 column 7, found NaN,1",
    ),
    ("[@]", "", ""),
    ("[@", "", ""),
    ("[@,\n", "", ""),
    ("[@,]", "not_json", "trailing comma"),
    (
        "[@\n@]",
        "not_json",
        "expected `,` or `]` at line 2 column 1, found {",
    ),
    (
        r#"[@,{"ph":"X","ts":1"#,
        "cut_off",
        "found the end of the text",
    ),
    (r#"{"traceEvents":[@"#, "cut_off", "EOF"),
    (r#"{"traceEvents":[@]"#, "cut_off", "EOF"),
    (r#"{"traceEvents":[@,{"ph":"i","ts":"#, "cut_off", "EOF"),
    (
        r#"{"traceEvents":[@,{"ph":garbage},@]}"#,
        "not_json",
        "found garbage",
    ),
    (
        r#"{"traceEvents":[@,3]}"#,
        "not_a_trace",
        "expected an event, which begins with {, found 3",
    ),
    (
        r#"{"traceEvents":{}}"#,
        "not_a_trace",
        "expected an array of events",
    ),
    (r#"{"events":[@]}"#, "not_a_trace", "traceEvents"),
    ("3", "not_a_trace", "integer `3`"),
    ("[]", "not_a_trace", "expected an event"),
    ("", "not_a_trace", "found the end of the text"),
    ("garbage", "not_json", "found garbage"),
    (
        "@\n@\n",
        "not_json",
        "trailing characters at line 2 column 1, found {",
    ),
    ("[@]garbage", "not_json", "trailing characters"),
    // A byte order mark.
    ("\u{feff}[@]", "not_json", "found <U+FEFF>[{"),
    (r#"{"traceEvents":[@],}"#, "not_json", "trailing comma"),
    (
        r#"{"metadata":NaN,"traceEvents":[@]}"#,
        "not_json",
        "found NaN",
    ),
    (
        r#"[@,{"ph":"M","args":{"a":NaN}}]"#,
        "not_json",
        "found NaN",
    ),
    (
        "[@,{\"ph\":\"M\",\"name\":\"n\tm\"}]",
        "not_json",
        "control character",
    ),
    (
        r#"[@,{"ph":"M","name":"a\qb"}]"#,
        "not_json",
        "invalid escape",
    ),
    (r#"[@,{"ph":"M","name":"n\ud83d\ude00\u00e9"}]"#, "", ""),
    (
        r#"[@,{"ph":"M","name":"\"\ud83d\ude00"}]"#,
        "bad_escape",
        "at byte",
    ),
    (r#"[@,{"ph":"M","name":"C:\\"}]"#, "bad_escape", "at byte"),
    (
        r#"[@,{"ph":"i","pid":1,"ts":null}]"#,
        "bad_time",
        r#"{"ph":"i","pid":1,"ts":null}"#,
    ),
    (
        r#"[@,{"ph":"X","pid":1,"ts":1,"dur":"x"}]"#,
        "bad_time",
        "at byte",
    ),
    (r#"[@,{"ph":"M","tts":"5."}]"#, "bad_time", "at byte"),
    (r#"[@,{"ph":"M","x":1e999}]"#, "bad_number", "at byte"),
    (
        r#"[@,{"ph":"C","pid":1,"ts":1,"name":"q","args":{"a":1e999}}]"#,
        "bad_number",
        "at byte",
    ),
    (
        r#"[@,{"ph":"M","pid":"a","pid":9}]"#,
        "pid_twice",
        "at byte",
    ),
    (
        r#"[@,{"ph":"n","pid":1,"ts":1,"id2":{"local":1e999}}]"#,
        "bad_id",
        "at byte",
    ),
];

#[test]
fn what_is_called_loadable_loads() {
    let folder = tempfile::tempdir().unwrap();
    let event = span(json!({})).to_string();
    let mut loadable = Vec::new();
    for (number, (text, rule, words)) in DOCUMENTS.iter().enumerate() {
        let path = put(
            &folder,
            &format!("{number}.json"),
            text.replace('@', &event),
        );
        let report = report(&path);
        let rules = found(&report).into_keys();
        let expected = [*rule].into_iter().filter(|rule| !rule.is_empty());
        assert!(rules.eq(expected), "{text}: {report}");
        if !rule.is_empty() {
            let place = &report["findings"][0]["places"][0];
            let what = format!(
                "at byte {}: {}",
                place["offset"],
                place["what"].as_str().unwrap()
            );
            assert!(what.contains(words), "{text}: {what}");
        }
        let is_loaded =
            rule.is_empty() || *rule == "bad_id" || *rule == "cut_off" && text.starts_with('[');
        assert_eq!(report["is_loaded"], json!(is_loaded), "{text}");
        if is_loaded {
            loadable.push(path);
        }
    }
    if let Some(loads) = loads("what_is_called_loadable_loads", &loadable) {
        assert_eq!(loads, vec![true; loadable.len()]);
    }
}

#[test]
fn a_character_is_cut_off_only_within_a_string() {
    let folder = tempfile::tempdir().unwrap();
    let event = span(json!({})).to_string();
    for (text, rule) in [
        ("[@,\n{\"name\":\"a", "cut_off"),
        ("[@,{\"name\":\"\\\"a", "cut_off"),
        ("[@]", "not_utf8"),
        ("[@", "not_utf8"),
        ("[@,\n", "not_utf8"),
        ("{\"traceEvents\":[@]}\n", "not_utf8"),
    ] {
        let whole = text.replace('@', &event) + "\u{e9}";
        let bytes = &whole.as_bytes()[..whole.len() - 1];
        let report = report(&put(&folder, "cut.json", bytes));
        assert_eq!(found(&report)[rule], 1, "{text}: {report}");
    }
}

#[test]
fn bytes_that_are_not_utf8_and_deep_events_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = b"[{\"ph\":\"M\",\"name\":\"\xff\"}]".as_slice();
    let report_of_bytes = report(&put(&folder, "bytes.json", bytes));
    let place = &report_of_bytes["findings"][0]["places"][0];
    assert_eq!(found(&report_of_bytes)["not_utf8"], 1);
    assert_eq!(place["offset"], json!(19));
    for (levels, is_deep) in [(126, false), (127, true), (100_000, true)] {
        let (front, back) = ("[".repeat(levels), "]".repeat(levels));
        let text = format!(r#"[{{"ph":"M","args":{front}{back}}}]"#);
        let found = found(&report(&put(&folder, "deep.json", text)));
        assert_eq!(found.contains_key("nested_json"), is_deep, "{levels}");
    }
}
