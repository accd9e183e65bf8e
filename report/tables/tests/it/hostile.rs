//! Traces with huge, very many, malformed or missing data.

use crate::events::event;
use crate::tables::{Row, Tables};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// There are more names than can be numbered, in count and size, and more rows than a row group has.
#[test]
fn very_many_names_and_keys_are_written() {
    let long = "x".repeat(300);
    let span = |nth: u64| {
        let (ts, text) = (2 * nth, nth % 7);
        event(&format!(
            "X 1 {ts}+1 '{nth} {long}' 'key {nth} {long}'={nth} same='text {text}'"
        ))
    };
    let count = 70_000;
    let tables = Tables::of_lines(&(0..count).map(span).collect::<Vec<_>>());
    let slices = tables.rows("slice");
    assert_eq!(slices.len() as u64, count);
    for (nth, slice) in slices.iter().enumerate() {
        assert_eq!(slice["ts"], 2_000 * nth);
        assert_eq!(slice["name"], json!(format!("{nth} {long}")));
    }
    let first = slices[0]["id"].as_i64().unwrap();
    let args = tables.rows("args");
    assert_eq!(args.len() as u64, 2 * count);
    for arg in &args {
        let nth = arg["arg_set_id"].as_i64().unwrap() - first;
        if arg["key"] == "args.same" {
            assert_eq!(arg["string_value"], json!(format!("text {}", nth % 7)));
        } else {
            assert_eq!(arg["key"], json!(format!("args.key {nth} {long}")));
            assert_eq!(arg["int_value"], nth);
        }
    }
}

#[test]
fn huge_args_are_written() {
    let texts = ["a", "b", "c", "d"].map(|text| text.repeat(9 << 20));
    let span = |nth: usize| {
        let (ts, text, list) = (2 * nth, &texts[nth], json!(vec![nth; 50_000]));
        event(&format!("X 1 {ts}+1 huge text={text} list={list}"))
    };
    let tables = Tables::of_lines(&(0..4).map(span).collect::<Vec<_>>());
    let args = tables.rows("args");
    assert_eq!(args.len(), 4 * 50_001);
    let found = args.iter().filter_map(|row| row["string_value"].as_str());
    assert_eq!(found.collect::<Vec<_>>(), texts);
}

/// A valid checksum does not imply that args are well-formed. Torn args and args that are nested too deeply count as none.
#[test]
fn malformed_args_in_a_block_with_a_checksum_are_ignored() {
    let process = Process::new(41);
    let on = process.main_thread();
    let deep = |lists: usize| format!("\"a\":1,\"b\":{}1{}", "[".repeat(lists), "]".repeat(lists));
    let [one, torn] = [r#""a":1"#, r#""a":1,"b":[,"#].map(str::to_owned);
    let args = [one, torn, deep(120), deep(130), deep(100_000)];
    let lines = (2_000_000..).zip(&args);
    let lines = lines.map(|(ns, args)| on.span(ns, 1, "odd", args));
    let lines: Vec<String> = lines.collect();
    let folder = tempfile::tempdir().unwrap();
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(1_000_000));
    fragment.block(1, 0, &stream(&lines));
    fragment.line(&process.anchor(9_000_000));
    fragment.write(folder.path(), "trace.41.jsonl");
    let tables = Tables::write(&[folder.path().to_owned()]);
    assert_eq!(tables.rows("slice").len(), lines.len());
    let found = tables.rows("args");
    let keys = found.iter().map(|row| row["flat_key"].as_str().unwrap());
    assert_eq!(keys.collect::<Vec<_>>(), ["args.a", "args.a", "args.b"]);
}

/// There are more names of counters than can be numbered. Each has its own track, however many threads find it.
#[test]
fn very_many_counters_are_written() {
    let long = "x".repeat(300);
    let sample = |nth: u64| event(&format!("C 1 {nth} '{} {long}' n={nth}", nth % 50_000));
    let tables = Tables::of_lines(&(0..60_000).map(sample).collect::<Vec<_>>());
    let tracks = tables.rows("track").into_iter();
    let track = |row: Row| (row["id"].as_i64().unwrap(), row["name"].clone());
    let tracks: BTreeMap<i64, Value> = tracks.map(track).collect();
    assert_eq!(tracks.len(), 50_000);
    let samples = tables.rows("counter");
    assert_eq!(samples.len(), 60_000);
    for sample in samples {
        let name = &tracks[&sample["track_id"].as_i64().unwrap()];
        let nth = sample["ts"].as_u64().unwrap() / 1_000;
        assert_eq!(name, &json!(format!("{} {long} n", nth % 50_000)));
    }
}

/// The number of begins without an end is limited.
#[test]
fn spans_that_are_too_deep_are_counted() {
    let begins = 70_000;
    let begin = |nth: u64| event(&format!("B 1 {nth} open"));
    let tables = Tables::of_lines(&(0..begins).map(begin).collect::<Vec<_>>());
    let metadata = tables.rows("metadata");
    let left = metadata.iter().find(|row| row["name"] == "spans_too_deep");
    assert_eq!(left.unwrap()["int_value"], begins - 65_536);
    let slices = tables.rows("slice");
    assert_eq!(slices.last().unwrap()["depth"], 65_536);
}
