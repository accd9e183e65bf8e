//! Block headers torn in their first bytes, as the naive reader and the merge take them (FORMAT.md §4).

use std::fs;
use std::path::Path;

use crate::invocation::RunDir;
use crate::trace::Trace;
use format_oracle::reader::read_dir;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Process, Ring, Slot};

/// Returns the merge's trace, and the number of damaged places in its report.
fn merged(dir: &Path) -> (Trace, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let mut options = trace_merge::Options::new([dir.to_path_buf()]);
    options.output = trace_merge::Output::File(path.clone());
    options.settle = false;
    options.threads = 1;
    let report = trace_merge::merge(&options).unwrap();
    (Trace::parse(&fs::read(path).unwrap()), report.damage.total)
}

/// Asserts that both readers find these events in a fragment, and this number of damaged places.
fn both_find(dir: &Path, fragment: &[u8], names: &[&str], damage: u64) {
    fs::write(dir.join("trace.1.jsonl"), fragment).unwrap();
    let text = String::from_utf8_lossy(fragment);
    let read = read_dir(dir);
    let mut found: Vec<_> = read.events.iter().map(|event| &event["name"]).collect();
    found.sort_unstable_by_key(|name| name.as_str());
    assert_eq!(found, names, "{text}");
    let count = read.damage.len() as u64;
    assert_eq!(count, damage, "{:?}: {text}", read.damage);
    let (trace, found) = merged(dir);
    let found = (trace.names(), found);
    assert_eq!(found, (names.to_vec(), damage), "the merge: {text}");
}

#[test]
fn a_torn_block_header_is_no_damage_only_before_another_try_or_above_the_ring() {
    let run = RunDir::new();
    let dir = run.fragments();
    let process = Process::with_ring(1);
    let on = process.main_thread();
    let lines = ["a", "b", "c"].map(|name| on.span(1000, 500, name, ""));
    let plain = on.span(2000, 500, "p", "") + "\n";
    let mut fragment = process.fragment();
    let header_bytes = fragment.bytes.len();
    let flushed = fragment.block(1, 0, &stream(&lines[..2]));
    let slot = Slot {
        tid: process.pid,
        stream: stream(&lines),
        flushed,
        ..Slot::default()
    };
    let ring = Ring::of_thread(&process, slot);
    let whole = fragment.bytes;
    let (header, block) = whole.split_at(header_bytes);
    let block_header = block.iter().position(|byte| *byte == b'\n').unwrap();
    let (all, and_plain) = (["a", "b", "c"], ["a", "b", "c", "p"]);
    for len in (1..block_header).step_by(6) {
        let torn = &block[..len];
        let ring = ring.write_here(&dir);
        let retried = [header, torn, b"\n", block].concat();
        both_find(&dir, &retried, &all, 0);
        let before_a_line = [header, torn, b"\n", plain.as_bytes(), block].concat();
        both_find(&dir, &before_a_line, &and_plain, 1);
        let before_an_empty_line = [header, torn, b"\n\n", block].concat();
        both_find(&dir, &before_an_empty_line, &all, 1);
        let under_way = [&whole, torn].concat();
        both_find(&dir, &under_way, &all, 0);
        // Without the ring, neither reader can know that the torn header is of a write under way. The missing ring is damage as well.
        fs::remove_file(ring).unwrap();
        both_find(&dir, &under_way, &all[..2], 2);
    }
}
