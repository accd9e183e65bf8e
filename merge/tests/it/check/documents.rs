//! Files that are no trace, or not quite. Whatever `--check` calls loadable, the trace processor loads.

use super::{found, put, report, span};
use crate::perfetto::loads;
use serde_json::json;

/// The rule that is broken, what is said of it, and the text, with `@` for an event and `¶` for a line's end.
const DOCUMENTS: &str = r#"
 | | {"traceEvents":[@]}
 | | {"traceEvents":[]}
 | | [@]
 | | [@
 | | [@,¶
not_json | expected value at line 1 column 7, found NaN,1 | {"a":[NaN,1
not_json | trailing comma | [@,]
not_json | expected `,` or `]` at line 2 column 1, found { | [@¶@]
not_json | found garbage | {"traceEvents":[@,{"ph":garbage},@]}
not_json | found garbage | garbage
not_json | trailing characters at line 2 column 1, found { | @¶@¶
not_json | found <U+FEFF>[{ | <BOM>[@]
not_json | trailing comma | {"traceEvents":[@],}
not_json | found NaN | {"metadata":NaN,"traceEvents":[@]}
not_json | found NaN | [@,{"ph":"M","args":{"a":NaN}}]
not_json | control character | [@,{"ph":"M","name":"n¶m"}]
not_json | invalid escape | [@,{"ph":"M","name":"a\qb"}]
cut_off | found the end of the text | [@,{"ph":"X","ts":1
cut_off | EOF | {"traceEvents":[@
cut_off | EOF | {"traceEvents":[@]
cut_off | EOF | {"traceEvents":[@,{"ph":"i","ts":
not_a_trace | expected an event, which begins with {, found 3 | {"traceEvents":[@,3]}
not_a_trace | expected an array of events | {"traceEvents":{}}
not_a_trace | traceEvents | {"events":[@]}
not_a_trace | integer `3` | 3
not_a_trace | expected an event | []
not_a_trace | found the end of the text |
 | | [@,{"ph":"M","name":"n\ud83d\ude00\u00e9"}]
bad_escape | at byte | [@,{"ph":"M","name":"\"\ud83d\ude00"}]
bad_escape | at byte | [@,{"ph":"M","name":"C:\\"}]
bad_time | {"ph":"i","pid":1,"ts":null} | [@,{"ph":"i","pid":1,"ts":null}]
bad_time | at byte | [@,{"ph":"X","pid":1,"ts":1,"dur":"x"}]
bad_time | at byte | [@,{"ph":"M","tts":"5."}]
bad_number | at byte | [@,{"ph":"C","pid":1,"ts":1,"name":"q","args":{"a":1e999}}]
pid_twice | at byte | [@,{"ph":"M","pid":"a","pid":9}]
bad_id | at byte | [@,{"ph":"n","pid":1,"ts":1,"id2":{"local":1e999}}]
"#;

#[test]
fn what_is_called_loadable_loads() {
    let folder = tempfile::tempdir().unwrap();
    let event = span(json!({})).to_string();
    let mut loadable = Vec::new();
    for (number, line) in DOCUMENTS.trim_matches('\n').lines().enumerate() {
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let (rule, words, text) = (parts[0], parts[1], parts[2]);
        let text = text.replace('@', &event).replace('¶', "\n");
        let text = text.replace("<BOM>", "\u{feff}");
        let path = put(&folder, &format!("{number}.json"), &text);
        let report = report(&path);
        let rules = found(&report).into_keys();
        assert!(
            rules.eq((!rule.is_empty()).then_some(rule)),
            "{line}: {report}"
        );
        if !rule.is_empty() {
            let place = &report["findings"][0]["places"][0];
            let what = place["what"].as_str().unwrap();
            let what = format!("at byte {}: {what}", place["offset"]);
            assert!(what.contains(words), "{line}: {what}");
        }
        let is_loaded = match rule {
            "" | "bad_id" => true,
            _ => rule == "cut_off" && text.starts_with('['),
        };
        assert_eq!(report["is_loaded"], json!(is_loaded), "{line}");
        if is_loaded {
            loadable.push(path);
        }
    }
    if let Some(loads) = loads("what_is_called_loadable_loads", &loadable) {
        assert_eq!(loads, vec![true; loadable.len()]);
    }
}

#[test]
fn bytes_that_are_not_utf8_and_deep_events_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8]| report(&put(&folder, "bytes.json", bytes));
    // A character is cut off only within a string.
    let event = span(json!({})).to_string();
    for (text, rule) in [
        ("[@,\n{\"name\":\"a", "cut_off"),
        ("[@,{\"name\":\"\\\"a", "cut_off"),
        ("[@]", "not_utf8"),
        ("[@,\n", "not_utf8"),
    ] {
        let whole = text.replace('@', &event) + "\u{e9}";
        let report = check(&whole.as_bytes()[..whole.len() - 1]);
        assert_eq!(found(&report)[rule], 1, "{text}: {report}");
    }
    let report = check(b"[{\"ph\":\"M\",\"name\":\"\xff\"}]");
    assert_eq!(found(&report)["not_utf8"], 1);
    assert_eq!(report["findings"][0]["places"][0]["offset"], 19);
    for (levels, is_deep) in [(126, false), (127, true), (100_000, true)] {
        let (front, back) = ("[".repeat(levels), "]".repeat(levels));
        let text = format!(r#"[{{"ph":"M","args":{front}{back}}}]"#);
        let found = found(&check(text.as_bytes()));
        assert_eq!(found.contains_key("nested_json"), is_deep, "{levels}");
    }
}
