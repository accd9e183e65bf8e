//! A window of a run is found without reading the rest: each segment says how far back what it holds began.

use crate::host;
use e2e::host_support::scratch;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A segment: its header's `open_ns`, and name, label and start in ns of its spans.
type Segment = (Option<u64>, Vec<(String, String, u64)>);

/// Reads the segments of the only fragment in a directory, in their order.
fn segments(dir: &Path) -> Vec<Segment> {
    let files = fs::read_dir(dir.join("fragments")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let texts = paths.filter(|path| path.extension() == Some("jsonl".as_ref()));
    let mut segments: Vec<(u64, Segment)> = texts
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().filter(|line| !line.is_empty());
            let mut lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
            let header = lines.next().unwrap()["args"].take();
            let span = |line: Value| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let start_ns = (line["ts"].as_f64()? * 1000.0).round() as i64;
                let names = (text(&line["name"]), text(&line["args"]["label"]));
                Some((names.0, names.1, start_ns.unsigned_abs()))
            };
            let segment = (header["open_ns"].as_u64(), lines.filter_map(span).collect());
            (header["segment"].as_u64().unwrap(), segment)
        })
        .collect();
    segments.sort_by_key(|(number, _)| *number);
    segments.into_iter().map(|(_, segment)| segment).collect()
}

/// A thread may have taken the time of an event just before a segment begins, and wait for the processor.
const WAITING_NS: u64 = 1_000_000_000;

#[test]
fn no_line_begins_before_the_open_ns_of_its_segment() {
    let dir = scratch();
    // Segments of 1 MiB, each of which lasts for less than a second.
    let host = host(dir.path(), &["long", "1000", "45", "4", "42"]);
    let _outcome = host.variable("SA_PROFILE_MAX_MB", "16").run().quiet();
    let segments = segments(dir.path());
    assert!(segments.len() >= 3, "{}", segments.len());
    let mut long = 0;
    for (number, (open_ns, _)) in segments.iter().enumerate().skip(1) {
        let open_ns = open_ns.expect("a segment whose recorder knows what is open");
        for (name, label, start_ns) in segments[number..].iter().flat_map(|(_, spans)| spans) {
            // What is told only afterwards is in `late_ns`.
            if label == "told" {
                continue;
            }
            assert!(
                start_ns + WAITING_NS >= open_ns,
                "segment {number}: {open_ns}, and {name} {label} at {start_ns}"
            );
            long += u64::from(name == "long");
        }
    }
    assert!(long >= 4, "{long} long spans cross segments");
}
