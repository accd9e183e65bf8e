//! Files that are no trace, or not quite. Whatever `--check` calls loadable, the trace processor loads.

use super::{found, put, report, span};
use crate::cases::bytes;
use crate::perfetto::loads;
use serde_json::json;

/// The rules that are broken, what is said of the first one, and the text, with `@` for an event, `¶` for a line's end and `<hex ff>` for bytes. A `!` marks
/// what the trace processor refuses at once. Of other texts it may never end loading.
const DOCUMENTS: &str = include_str!("documents.txt");

#[test]
fn what_is_called_loadable_loads() {
    let folder = tempfile::tempdir().unwrap();
    let event = span(json!({})).to_string();
    let mut loads_by_path = Vec::new();
    for (number, line) in DOCUMENTS.trim_matches('\n').lines().enumerate() {
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let (rules, words, text) = (parts[0].trim_end_matches('!'), parts[1], parts[2]);
        let text = text.replace('@', &event).replace('¶', "\n");
        let text = bytes(&text);
        let path = put(&folder, &format!("{number}.json"), &text);
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
    if let Some(loads) = loads("what_is_called_loadable_loads", &paths) {
        assert_eq!(loads, expected, "{paths:?}");
    }
}
