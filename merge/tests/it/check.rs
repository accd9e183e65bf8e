//! `--check`: its rules count exactly the events that the trace processor loses, and a trace that
//! it calls loadable can be loaded.

mod documents;
mod losses;

use crate::invocation::{Ended, packed, trace_merge};
use crate::perfetto::{SLICES, query};
use crate::random::Rng;
use losses::losses;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Number of occurrences of each rule or stat.
type Counts = BTreeMap<String, u64>;

fn overlaps(count: u64) -> Counts {
    [("overlap".to_owned(), count)].into()
}

fn check(path: &Path) -> Counts {
    found(&report(path))
}

fn report(path: &Path) -> Value {
    let mut command = trace_merge();
    let ended = Ended::run(command.args(["--report", "json", "--check"]).arg(path));
    let report = ended.report().0;
    let is_clean = found(&report).is_empty();
    assert_eq!(ended.code, i32::from(!is_clean), "{}", ended.stderr);
    report
}

fn found(report: &Value) -> Counts {
    let count = |finding: &Value| {
        let (rule, count) = (&finding["rule"], &finding["count"]);
        assert!(!finding["places"].as_array().unwrap().is_empty(), "{rule}");
        (rule.as_str().unwrap().to_owned(), count.as_u64().unwrap())
    };
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(count).collect()
}

fn write_file(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns the stat in which the trace processor counts violations of a rule, or `None` if it drops
/// such events without counting them.
fn stat(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "overlap" => "slice_drop_overlapping_complete_event",
        "misplaced_end" => "misplaced_end_event",
        "flow_twice" => "flow_duplicate_id",
        "flow_without_start" => "flow_without_start",
        "flow_without_span" => "flow_no_enclosing_slice",
        _ => return None,
    })
}

const STATS: &str = "select case when name in ('flow_step_without_start', 'flow_end_without_start') then 'flow_without_start' else name end as stat, sum(value)
    from stats where value > 0 and idx is null and name in ('flow_step_without_start', 'flow_end_without_start', 'flow_duplicate_id', 'flow_no_enclosing_slice',
    'slice_drop_overlapping_complete_event', 'misplaced_end_event') group by stat order by stat";

/// Returns the trace processor's error counts and its number of slices. Returns `None`, with a loud message, if it cannot be set up.
fn stats(test: &str, path: &Path) -> Option<(Counts, Value)> {
    let rows = query(test, path, &[STATS, SLICES])?;
    let name = |row: &Value| row[0].as_str().unwrap().to_owned();
    let pairs = rows[0].iter();
    let stats = pairs.map(|row| (name(row), row[1].as_u64().unwrap()));
    Some((stats.collect(), rows[1][0][0].clone()))
}

fn as_stats(lost: &Counts) -> Counts {
    let mut stats = Counts::new();
    for (rule, count) in lost {
        if let Some(stat) = stat(rule) {
            *stats.entry(stat.to_owned()).or_default() += count;
        }
    }
    stats
}

/// Returns a span of 100 µs that begins at 10 µs, with `changes`. A change to null removes the
/// member.
fn span(changes: Value) -> Value {
    changed(
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 100, "name": "a", "cat": "c"}),
        changes,
    )
}

fn changed(mut event: Value, changes: Value) -> Value {
    let members = event.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(members.remove(key)),
            _ => drop(members.insert(key.clone(), value.clone())),
        }
    }
    event
}

#[test]
fn findings_are_events_that_the_trace_processor_loses() {
    let test = "findings_are_events_that_the_trace_processor_loses";
    let folder = tempfile::tempdir().unwrap();
    let (mut all, mut expected) = (Vec::new(), Counts::new());
    for (number, (events, lost)) in losses().into_iter().enumerate() {
        let trace = json!({"traceEvents": events}).to_string();
        assert_eq!(
            check(&write_file(&folder, "one.json", &trace)),
            lost,
            "{trace}"
        );
        // Each case gets a process and flows of its own.
        let pid = 100 + number;
        for mut event in events {
            for key in ["pid", "tid"] {
                if event[key] == 1 {
                    event[key] = json!(pid);
                }
            }
            if event["cat"] == "c" {
                event["cat"] = json!(format!("c{number}"));
            }
            all.push(event);
        }
        for (rule, count) in lost {
            *expected.entry(rule).or_default() += count;
        }
    }
    let path = write_file(&folder, "all.json", json!({"traceEvents": all}).to_string());
    assert_eq!(check(&path), expected);
    if let Some((stats, _)) = stats(test, &path) {
        assert_eq!(as_stats(&expected), stats);
    }
}

#[test]
fn complete_spans_are_dropped_as_by_the_trace_processor() {
    let test = "complete_spans_are_dropped_as_by_the_trace_processor";
    let folder = tempfile::tempdir().unwrap();
    for (seed, length) in [(77, 200_000), (78, 20_000), (79, 2_000)] {
        let mut rng = Rng::new(seed);
        let events = (0..20_000).map(|_| {
            let (tid, ts, dur) = (1 + rng.below(8), rng.below(length), rng.below(100));
            span(json!({"tid": tid, "ts": ts, "dur": dur}))
        });
        let text = json!({"traceEvents": events.collect::<Vec<_>>()}).to_string();
        let path = write_file(&folder, "any.json", text);
        let lost = check(&path);
        assert!(lost["overlap"] > 100, "{lost:?}");
        let Some((stats, shown)) = stats(test, &path) else {
            return;
        };
        assert_eq!(as_stats(&lost), stats, "{length}");
        assert_eq!(shown, json!(20_000 - lost["overlap"]), "{length}");
    }
}

/// Returns two spans that overlap, and the offset of the second one.
fn clashing() -> (String, usize) {
    let text = json!([span(json!({})), span(json!({"ts": 50}))]).to_string();
    let at = text.rfind('{').unwrap();
    (text, at)
}

#[test]
fn it_reads_a_trace_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_file(&folder, "trace.json", clashing().0);
    let mut cat = Command::new("cat");
    let mut cat = cat.arg(path).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = cat.stdout.take().unwrap();
    let ended = Ended::run(trace_merge().args(["--check", "-"]).stdin(pipe));
    cat.wait().unwrap();
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let words = "standard input: 2 events, 1 problem";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn it_reads_all_of_a_compressed_trace_and_finds_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (text, at) = clashing();
    let two = [&text[..at], &text[at..]].map(|text| packed(text.as_bytes()));
    let two = write_file(&folder, "two.json.gz", two.concat());
    assert_eq!(check(&two), overlaps(1));
    let bytes = packed(text.as_bytes());
    let path = write_file(&folder, "cut.json.gz", &bytes[..bytes.len() - 12]);
    assert!(check(&path).contains_key("cut_off"));
}

/// The events need many times the memory limit, so they go through files.
#[test]
fn events_sorted_in_files_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let at = |thread: u64, ts: u64| {
        let ts = 100 * ts;
        format!(r#"{{"ph":"X","pid":1,"tid":{thread},"ts":{ts},"dur":101,"name":"a"}}"#)
    };
    // Of three consecutive spans, the second overlaps the first, and the third overlaps none that
    // is shown.
    let numbers = (0..300_000).rev();
    let spans = numbers.map(|number| at(1 + number % 7, number / 7));
    let text = format!("[{}]", spans.collect::<Vec<_>>().join(","));
    let report = report(&write_file(&folder, "many.json", text));
    assert_eq!(report["events"], json!(300_000));
    let per_thread = |thread: u64| (300_000 - thread).div_ceil(7) / 2;
    let expected = (0..7).map(per_thread).sum();
    assert_eq!(found(&report), overlaps(expected));
}
