//! Files that are no trace, or not quite: which of them Perfetto loads.

use super::{lost, put, report, span};
use crate::perfetto::loads;
use serde_json::json;
use std::path::PathBuf;

/// Text with `@` for an event, what is found, and whether Perfetto loads it.
const DOCUMENTS: [(&str, &str, bool); 26] = [
    (r#"{"traceEvents":[@]}"#, "", true),
    (r#"[@]"#, "", true),
    (r#"[@"#, "", true),
    ("[@,", "", true),
    (r#"[@,]"#, "comma", true),
    ("[@\n@]", "comma", true),
    (r#"[@,{"ph":"X","ts":1"#, "cut_off", true),
    (r#"{"traceEvents":[@"#, "cut_off", false),
    (r#"{"traceEvents":[@]"#, "cut_off", false),
    (r#"{"traceEvents":[@,{"ph":"i","ts":"#, "cut_off", false),
    (r#"{"traceEvents":[@,{"ph":garbage},@]}"#, "not_json", false),
    (r#"{"traceEvents":[@,3]}"#, "not_json", false),
    (
        r#"{"traceEvents":[@,{"ph":"i","pid":1,"ts":null,"name":"n"}]}"#,
        "bad_time",
        false,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"i","pid":1,"ts":"abc","name":"n"}]}"#,
        "bad_time",
        false,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"X","pid":1,"ts":1,"dur":"x","name":"n"}]}"#,
        "bad_time",
        false,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"X","pid":1,"ts":1,"dur":2,"tts":null,"name":"n"}]}"#,
        "bad_time",
        false,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"i","s":"p","pid":1,"ts":1,"name":"n","x":1e999}]}"#,
        "bad_number",
        false,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"i","s":"p","pid":1,"ts":1,"name":"n","tts":"5.","tdur":1}]}"#,
        "bad_time",
        false,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"M","pid":1,"name":"process_name","args":{"name":5}}]}"#,
        "bad_name",
        true,
    ),
    (
        r#"{"traceEvents":[@,{"ph":"i","s":"p","pid":1,"ts":1,"name":"n","id2":{"local":1e999}}]}"#,
        "bad_id2",
        true,
    ),
    ("@\n@\n", "not_a_trace", true),
    ("", "not_a_trace", true),
    ("garbage", "not_json", false),
    // A byte order mark.
    ("\u{feff}[@]", "not_json", false),
    ("[@]garbage", "after_end", true),
    (r#"{"traceEvents":[@]}garbage"#, "after_end", true),
];

/// The same of text that is not quite JSON.
const LOOSE: [(&str, &str, bool); 17] = [
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"n","args":{"a":NaN,"b":-Infinity}}]"#,
        "loose_json",
        true,
    ),
    (
        "[@,{\"ph\":\"i\",\"pid\":1,\"ts\":1,\"s\":\"p\",\"name\":\"n\tm\u{1}\"}]",
        "loose_json",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"C:\\dir\\u12"}]"#,
        "",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"a\qb"}]"#,
        "loose_json",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"n",}]"#,
        "loose_json",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"\u12g4\u"}]"#,
        "loose_json",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"n","value":NaN}]"#,
        "not_json",
        false,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"\ud83d\ude00"}]"#,
        "",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"n","args":{"a":"\ud83d\ude00"}}]"#,
        "",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"\u00e9"}]"#,
        "",
        true,
    ),
    (r#"{"traceEvents":[@,,@]}"#, "not_json", false),
    (r#"{"traceEvents":[,@]}"#, "comma", true),
    (r#"{"traceEvents":[@],}"#, "comma", true),
    (
        r#"{"traceEvents":[@],"otherData":{"a":NaN}}"#,
        "loose_json",
        true,
    ),
    (r#"{"metadata":NaN,"traceEvents":[@]}"#, "not_json", false),
    (
        r#"[@,{"ph":"X","pid":1,"ts":1,"dur":"x","name":"n"},@]"#,
        "bad_time",
        true,
    ),
    (
        r#"[@,{"ph":"i","pid":1,"ts":1,"s":"p","name":"n","a":[1e999,}]"#,
        "cut_off",
        true,
    ),
];

#[test]
fn a_file_that_does_not_load_is_told_from_one_that_does() {
    let test = "a_file_that_does_not_load_is_told_from_one_that_does";
    are_told(test, &DOCUMENTS);
}

#[test]
fn text_that_is_not_quite_json_is_shown_or_not() {
    are_told("text_that_is_not_quite_json_is_shown_or_not", &LOOSE);
}

fn are_told(test: &str, documents: &[(&str, &str, bool)]) {
    let folder = tempfile::tempdir().unwrap();
    let event = span(json!({})).to_string();
    let put = |(number, (text, ..)): (usize, &(&str, &str, bool))| {
        let name = format!("{number}.json");
        put(&folder, &name, text.replace('@', &event))
    };
    let paths: Vec<PathBuf> = documents.iter().enumerate().map(put).collect();
    for ((text, rule, is_loaded), path) in documents.iter().zip(&paths) {
        let expected: Vec<&&str> = Some(rule)
            .filter(|rule| !rule.is_empty())
            .into_iter()
            .collect();
        let report = report(path);
        assert_eq!(lost(&report).keys().collect::<Vec<_>>(), expected, "{text}");
        // Perfetto takes what is no trace for an empty one.
        let is_shown = *is_loaded && *rule != "not_a_trace";
        assert_eq!(report["is_loaded"], json!(is_shown), "{text}");
    }
    let Some(loads) = loads(test, &paths) else {
        return;
    };
    for ((text, _, is_loaded), loads) in documents.iter().zip(loads) {
        assert_eq!(loads, *is_loaded, "{text}");
    }
}
