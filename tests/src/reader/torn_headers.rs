//! Block headers torn in their first bytes, as this reader and the merge take them (FORMAT.md §4).

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::read_dir;
use super::sample::Sample;

/// The events and the number of damaged places that the merge sees.
fn merged(dir: &Path) -> (Vec<String>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let mut options = trace_merge::Options::new([dir.to_path_buf()]);
    options.output = trace_merge::Output::File(trace.clone());
    options.settle = false;
    options.threads = 1;
    let report = trace_merge::merge(&options).unwrap();
    let trace: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let spans = events.filter(|event| event["ph"] == "X");
    let mut names: Vec<_> = spans
        .map(|span| span["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    (names, report.damage.total)
}

/// Asserts that both readers find these events and so many damaged places in a fragment.
fn both_find(dir: &Path, fragment: &[u8], names: &[&str], damage: u64) {
    fs::write(dir.join("trace.1.jsonl"), fragment).unwrap();
    let text = String::from_utf8_lossy(fragment);
    let read = read_dir(dir);
    let mut found: Vec<_> = read.events.iter().map(|event| &event["name"]).collect();
    found.sort_unstable_by_key(|name| name.as_str());
    assert_eq!(found, names, "{text}");
    assert_eq!(
        read.damage.len() as u64,
        damage,
        "{:?}: {text}",
        read.damage
    );
    let names = names.iter().map(ToString::to_string).collect();
    assert_eq!(merged(dir), (names, damage), "the merge: {text}");
}

#[test]
fn a_torn_block_header_is_no_damage_only_before_another_try_or_above_the_ring() {
    let dir = tempfile::tempdir().unwrap();
    let (fragment, ring) = Sample::new(&["a", "b", "c"], 2).write(dir.path());
    let ring_bytes = fs::read(&ring).unwrap();
    let whole = fs::read(&fragment).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let (header, block) = (lines[0], &whole[lines[0].len()..]);
    let plain = br#"{"ph":"X","pid":1,"tid":2,"ts":2.000,"dur":0.500,"name":"p","cat":"x"}"#;
    let (all, and_plain) = (["a", "b", "c"], ["a", "b", "c", "p"]);
    for len in 1..lines[1].len() - 1 {
        let torn = &block[..len];
        fs::write(&ring, &ring_bytes).unwrap();
        let retried = [header, torn, b"\n", block].concat();
        both_find(dir.path(), &retried, &all, 0);
        let before_a_line = [header, torn, b"\n", plain, b"\n", block].concat();
        both_find(dir.path(), &before_a_line, &and_plain, 1);
        let before_an_empty_line = [header, torn, b"\n\n", block].concat();
        both_find(dir.path(), &before_an_empty_line, &all, 1);
        let under_way = [&whole, torn].concat();
        both_find(dir.path(), &under_way, &all, 0);
        // Nothing tells then that its positions were still to come; the ring is missed as well.
        fs::remove_file(&ring).unwrap();
        both_find(dir.path(), &under_way, &all[..2], 2);
    }
}
