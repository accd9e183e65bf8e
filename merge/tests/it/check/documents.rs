//! Files that are not traces, or not quite valid ones. The trace processor loads every file that `--check`
//! calls loadable.

use super::{found, report, span, write_file};
use crate::cases::bytes;
use crate::perfetto::loads;
use serde_json::json;

/// Broken rules, a part of the message of the first one, and the text, with `@` for an event, `¶`
/// for a newline and `<hex ff>` for bytes. A `!` marks texts that the trace processor rejects at
/// once. Loading other invalid texts may never end.
const DOCUMENTS: &str = include_str!("documents.txt");

#[test]
fn loadable_traces_load() {
    let folder = tempfile::tempdir().unwrap();
    let event = span(json!({})).to_string();
    let mut loads_by_path = Vec::new();
    for (number, line) in DOCUMENTS.trim_matches('\n').lines().enumerate() {
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let (rules, words, text) = (parts[0].trim_end_matches('!'), parts[1], parts[2]);
        let text = text.replace('@', &event).replace('¶', "\n");
        let text = bytes(&text);
        let path = write_file(&folder, &format!("{number}.json"), &text);
        let report = report(&path);
        let is_found = found(&report).into_keys().eq(rules.split_whitespace());
        assert!(is_found, "{line}: {report}");
        if !rules.is_empty() {
            let place = &report["findings"][0]["places"][0];
            let what = place["what"].as_str().unwrap();
            let what = format!("at byte {}: {what}", place["offset"]);
            assert!(what.contains(words), "{line}: {what}");
        }
        let is_loaded = match rules {
            "" | "bad_id" | "bad_phase" => true,
            _ => rules == "cut_off" && text.starts_with(b"["),
        };
        assert_eq!(report["is_loaded"], json!(is_loaded), "{line}");
        if is_loaded || parts[0].ends_with('!') {
            loads_by_path.push((path, is_loaded));
        }
    }
    let (paths, expected): (Vec<_>, Vec<_>) = loads_by_path.into_iter().unzip();
    if let Some(loads) = loads("loadable_traces_load", &paths) {
        assert_eq!(loads, expected, "{paths:?}");
    }
}
