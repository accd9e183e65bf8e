//! `--check`: what it says is lost is what the trace processor loses.

mod documents;
mod losses;

use crate::invocation::{Ended, Merged, trace_merge};
use crate::perfetto::{loads, query};
use crate::pypto;
use crate::random::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use losses::losses;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Rule or stat → how often.
type Counts = BTreeMap<String, u64>;

fn counts<const N: usize>(pairs: [(&str, u64); N]) -> Counts {
    pairs
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

fn run(path: &Path) -> Ended {
    Ended::of(
        trace_merge()
            .args(["--report", "json", "--check"])
            .arg(path),
    )
}

fn check(path: &Path) -> Counts {
    lost(&report(path))
}

fn report(path: &Path) -> Value {
    let ended = run(path);
    let report = ended.report().0;
    let is_clean = lost(&report).is_empty();
    assert_eq!(ended.code, i32::from(!is_clean), "{}", ended.stderr);
    report
}

fn lost(report: &Value) -> Counts {
    report["lost"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let (rule, count) = (&finding["rule"], &finding["count"]);
            assert!(!finding["places"].as_array().unwrap().is_empty(), "{rule}");
            (rule.as_str().unwrap().to_owned(), count.as_u64().unwrap())
        })
        .collect()
}

fn put(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The stat in which the trace processor counts what a rule finds; none if it loses it without counting.
fn stat(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "no_phase" | "no_ts" => "json_tokenizer_failure",
        "no_dur" | "counter_value" | "async_without_id" | "instant_without_thread" => {
            "json_parser_failure"
        }
        "negative_ts" => "trace_sorter_negative_timestamp_dropped",
        "overlap" => "slice_drop_overlapping_complete_event",
        "misplaced_end" => "misplaced_end_event",
        "flow_id" => "flow_invalid_id",
        "flow_twice" => "flow_duplicate_id",
        "flow_without_start" => "flow_without_start",
        "flow_without_span" => "flow_no_enclosing_slice",
        "flow_without_direction" => "flow_without_direction",
        _ => return None,
    })
}

const STATS: &str = "select case when name in ('flow_step_without_start', 'flow_end_without_start') then 'flow_without_start' else name end as stat, sum(value)
    from stats where value > 0 and idx is null and (name like 'flow_%' or name like 'json_%_failure' or name like 'slice_%' or name like 'misplaced%'
    or name like 'trace_sorter_negative%') group by stat order by stat";

/// What the trace processor counts; none (said loudly) where it cannot be set up.
fn stats(test: &str, path: &Path) -> Option<Counts> {
    let rows = query(test, path, &[STATS])?;
    let pair = |row: &Value| {
        (
            row[0].as_str().unwrap().to_owned(),
            row[1].as_u64().unwrap(),
        )
    };
    Some(rows[0].iter().map(pair).collect())
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

/// A span of 100 µs from 10 on, with `changes`; a change to null takes the member away.
fn span(changes: Value) -> Value {
    changed(
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 100, "name": "a", "cat": "c"}),
        changes,
    )
}

fn flow(phase: &str, ts: u64, id: Value, changes: Value) -> Value {
    let flow = json!({"ph": phase, "pid": 1, "tid": 1, "ts": ts, "name": "f", "cat": "c", "id": id, "bp": "e"});
    changed(flow, changes)
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
fn what_it_finds_is_what_the_trace_processor_loses() {
    let folder = tempfile::tempdir().unwrap();
    let (mut all, mut expected) = (Vec::new(), Counts::new());
    for (number, (events, lost)) in losses().into_iter().enumerate() {
        let trace = json!({"traceEvents": events}).to_string();
        assert_eq!(check(&put(&folder, "one.json", &trace)), lost, "{trace}");
        // Each in a process and with arrows of its own.
        let pid = 100 + number;
        for mut event in events {
            if event["pid"] == 1 {
                event["pid"] = json!(pid);
            }
            if event["tid"] == 1 {
                event["tid"] = json!(pid);
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
    let path = put(&folder, "all.json", json!({"traceEvents": all}).to_string());
    let lost = check(&path);
    assert_eq!(lost, expected);
    if let Some(stats) = stats("what_it_finds_is_what_the_trace_processor_loses", &path) {
        assert_eq!(as_stats(&lost), stats);
    }
}

/// An event of any kind within `length` microseconds. Its bind_id is too large to be taken for another arrow.
fn any_event(rng: &mut Rng, length: usize) -> Value {
    let phases = [
        "X", "X", "X", "B", "E", "i", "s", "t", "f", "b", "e", "n", "C",
    ];
    let phase = phases[rng.below(phases.len())];
    let (tid, ts) = (1 + rng.below(8), rng.below(length));
    let (name, cat) = (["a", "b", ""][rng.below(3)], ["c", "d", ""][rng.below(3)]);
    let mut event = json!({"ph": phase, "pid": 1, "tid": tid, "ts": ts, "name": name, "cat": cat});
    match phase {
        "X" => event["dur"] = json!(rng.below(100)),
        // A span gets the args of its end.
        "E" => event["args"] = json!({"end": 1}),
        "i" => event["name"] = json!("instant"),
        "s" | "t" | "f" => event["id"] = json!(rng.below(1_000)),
        "b" | "e" | "n" => any_async(rng, &mut event),
        "C" => event["args"] = [json!({"v": 1}), json!({"v": "x"})][rng.below(2)].clone(),
        _ => {}
    }
    if phase == "n" {
        event["name"] = json!("instant");
    }
    if phase == "X" && rng.below(50) == 0 {
        event["dur"] = json!(-5);
    }
    if phase == "f" && rng.below(2) == 0 {
        event["bp"] = json!("e");
    }
    if rng.below(10) == 0 {
        event["bind_id"] = json!((1 << 40) + rng.below(500));
        event["flow_in"] = json!(rng.below(2) == 0);
        event["flow_out"] = json!(rng.below(2) == 0);
    }
    event
}

/// Makes an async event of one of few tracks, or of none.
fn any_async(rng: &mut Rng, event: &mut Value) {
    let id = match rng.below(20) {
        0 => json!("7"),
        1 if event["ph"] != "e" => json!(1.5),
        _ => json!(rng.below(8)),
    };
    event["pid"] = json!(1 + rng.below(3));
    if event["ph"] == "e" {
        event["args"] = json!({"end": 1});
    }
    match rng.below(6) {
        0 => event["id2"] = json!({"global": id}),
        1 => event["id2"] = json!({"local": id}),
        _ => event["id"] = id,
    }
}

#[test]
fn any_mixture_of_spans_and_arrows_is_lost_as_the_trace_processor_does() {
    let test = "any_mixture_of_spans_and_arrows_is_lost_as_the_trace_processor_does";
    let folder = tempfile::tempdir().unwrap();
    for (seed, length) in [(77, 200_000), (78, 20_000), (79, 2_000)] {
        let mut rng = Rng::new(seed);
        let events: Vec<Value> = (0..20_000).map(|_| any_event(&mut rng, length)).collect();
        let text = json!({"traceEvents": events}).to_string();
        let path = put(&folder, "any.json", text);
        let report = report(&path);
        let lost = lost(&report);
        for rule in [
            "overlap",
            "end_without_begin",
            "async_without_id",
            "counter_value",
            "misplaced_end",
            "flow_twice",
            "flow_without_start",
        ] {
            assert!(lost[rule] > 100, "{rule}: {lost:?}");
        }
        let Some(stats) = stats(test, &path) else {
            return;
        };
        assert_eq!(as_stats(&lost), stats, "{length}");
        let shown = report["spans"].as_u64().unwrap() - report["spans_dropped"].as_u64().unwrap();
        let spans = "select count(*) from slice where name is not 'instant'";
        let ended =
            "select count(*) from slice join args using (arg_set_id) where key = 'args.end'";
        let rows = query(test, &path, &[spans, ended]).unwrap();
        assert_eq!(rows[0][0][0], json!(shown), "{length}");
        let ends = events
            .iter()
            .filter(|event| ["E", "e"].contains(&event["ph"].as_str().unwrap()));
        let found = ends.count() as u64 - lost["end_without_begin"];
        assert_eq!(rows[1][0][0], json!(found), "{length}");
    }
}

#[test]
fn a_small_bind_id_is_taken_for_another_arrow() {
    let test = "a_small_bind_id_is_taken_for_another_arrow";
    let folder = tempfile::tempdir().unwrap();
    let events = [
        span(json!({})),
        flow("s", 11, json!(77), json!({})),
        span(json!({"ts": 300, "bind_id": 0, "flow_in": true})),
        span(json!({"ts": 500, "bind_id": 0, "flow_out": true})),
        span(json!({"ts": 700, "bind_id": 1, "flow_in": true})),
    ];
    let text = json!({"traceEvents": events}).to_string();
    let path = put(&folder, "clash.json", text);
    let lost = check(&path);
    let expected = counts([
        ("bind_id_clash", 1),
        ("flow_twice", 1),
        ("flow_without_start", 1),
    ]);
    assert_eq!(lost, expected);
    if let Some(stats) = stats(test, &path) {
        assert_eq!(as_stats(&lost), stats);
        let ends = "select o.ts, i.ts from flow join slice o on o.id = slice_out join slice i on i.id = slice_in";
        let rows = query(test, &path, &[ends]).unwrap();
        assert_eq!(rows[0], [json!([10_000, 300_000])]);
    }
}

#[test]
fn what_only_chrome_refuses_is_not_lost_in_perfetto() {
    let test = "what_only_chrome_refuses_is_not_lost_in_perfetto";
    let folder = tempfile::tempdir().unwrap();
    let deep = "[".repeat(300) + &"]".repeat(300);
    let loose = r#"{"ph":"X","pid":1,"tid":1,"ts":200,"dur":5,"name":"n","args":{"a":NaN},"bind_id":4,"flow_out":true}"#;
    let text = format!(
        r#"{{"traceEvents":[{},{loose},{{"ph":"X","pid":1,"tid":1,"ts":300,"dur":5,"name":"d","args":{{"a":{deep}}},"bind_id":4,"flow_in":true}}],"x":{deep}}}"#,
        span(json!({})),
    );
    let path = put(&folder, "loose.json", &text);
    let ended = Ended::of(trace_merge().arg("--check").arg(&path));
    let at = text.find(loose).unwrap();
    for words in [
        "3 events checked, Perfetto shows them all, chrome://tracing loads nothing of it"
            .to_owned(),
        "loose_json: 1".to_owned(),
        format!("event 1 at byte {at}: ph \"X\", name \"n\""),
    ] {
        assert!(ended.stderr.contains(&words), "{words}: {}", ended.stderr);
    }
    assert_eq!(ended.code, 1);
    let shown = ["select count(*) from slice", "select count(*) from flow"];
    if let Some(rows) = query(test, &path, &shown) {
        assert_eq!((&rows[0][0][0], &rows[1][0][0]), (&json!(3), &json!(1)));
    }
}

/// The trace processor cannot be asked: it turns in circles.
#[test]
fn a_counter_that_is_no_number_to_json_keeps_perfetto_from_loading() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"[{"ph":"C","pid":1,"ts":5,"name":"q","args":{"a":1,"b":NaN}}]"#;
    let report = report(&put(&folder, "nan.json", text));
    let expected = counts([("counter_endless", 1), ("loose_json", 1)]);
    assert_eq!(lost(&report), expected);
    assert_eq!(report["is_loaded"], json!(false));
}

/// Of args that JSON does not allow, Perfetto takes some names, and turns in circles at others, which therefore are not asked of it.
#[test]
fn names_in_loose_args_are_told_as_perfetto_reads_them() {
    let test = "names_in_loose_args_are_told_as_perfetto_reads_them";
    let endless = "metadata_endless";
    let table = [
        ("{\"name\":\"a\tb\"}", None),
        (r#"{"name":"a\q"}"#, None),
        (r#"{"name":"good","other":[1,]}"#, None),
        (r#"{"name":"good","other":{"a":NaN}}"#, None),
        (r#"{"name":"good",}"#, None),
        (r#"{"other":{"a":NaN}}"#, Some("bad_name")),
        (r#"{"name":[NaN]}"#, Some("bad_name")),
        ("[NaN]", Some("bad_name")),
        (r#"{"name":NaN}"#, Some(endless)),
        (r#"{"name":"good","other":NaN}"#, Some(endless)),
        (r#"{"name":"good","other":-Infinity}"#, Some(endless)),
        (r#"{"name":"good","other":01}"#, Some(endless)),
        (r#"{"name":"good" "other":1}"#, Some(endless)),
        ("{name:1}", Some(endless)),
        (r#"{"name":"good","other":[1}"#, Some(endless)),
    ];
    let (mut events, mut shown) = (Vec::new(), Vec::new());
    for (pid, (args, rule)) in (900..).zip(table) {
        for kind in ["process_name", "thread_name"] {
            let name =
                format!(r#"{{"ph":"M","name":"{kind}","pid":{pid},"tid":{pid},"args":{args}}}"#);
            let folder = tempfile::tempdir().unwrap();
            let report = report(&put(&folder, "name.json", format!("[{name}]")));
            let mut expected = counts([("loose_json", 1)]);
            expected.extend(rule.map(|rule| (rule.to_owned(), 1)));
            assert_eq!(lost(&report), expected, "{name}");
            assert_eq!(report["is_loaded"], json!(rule != Some(endless)), "{name}");
            if rule != Some(endless) {
                events.push(name);
            }
        }
        if rule.is_none() {
            shown.push(json!([pid]));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = put(&folder, "names.json", format!("[{}]", events.join(",")));
    let named = ["process", "thread"].map(|table| {
        let id = &table[..1];
        format!("select {id}id from {table} where name is not null and {id}id >= 900 order by 1")
    });
    if let Some(rows) = query(test, &path, &[&named[0], &named[1]]) {
        assert_eq!(rows, [shown.clone(), shown]);
    }
}

#[test]
fn it_reads_a_trace_from_a_pipe() {
    let text = json!([span(json!({})), span(json!({"ts": 50}))]).to_string();
    let mut command = trace_merge();
    command.args(["--check", "-"]).stdin(Stdio::piped());
    let streams = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("standard input: 2 events checked, viewers would drop 1"),
        "{said}"
    );
}

#[test]
fn it_reads_compressed_traces_and_tells_places_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let text = json!([span(json!({})), span(json!({"ts": 50}))]).to_string();
    let pack = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let bytes = pack(&text);
    let path = put(&folder, "trace.json.gz", &bytes);
    let ended = Ended::of(trace_merge().arg("--check").arg(&path));
    assert_eq!(ended.code, 1);
    let at = text.rfind("{").unwrap();
    for words in [
        "2 events checked, viewers would drop 1 of 2 spans",
        "overlap: 1",
        "one holding the other",
        &format!("event 1 at byte {at}: ph \"X\", name \"a\", pid 1, tid 1, ts 50, dur 100"),
        "clashes with event 0 at byte 1: ph \"X\"",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let two = [&text[..at], &text[at..]].map(pack).concat();
    let path = put(&folder, "two.json.gz", two);
    let expected = counts([("gzip_members", 1), ("overlap", 1)]);
    assert_eq!(check(&path), expected);
    let test = "it_reads_compressed_traces_and_tells_places_in_words";
    if let Some(loads) = loads(test, &[path]) {
        assert_eq!(loads, [true]);
    }
    let path = put(&folder, "cut.json.gz", &bytes[..bytes.len() - 12]);
    assert!(check(&path).contains_key("cut_off"));
}

#[test]
fn what_cannot_be_read_is_no_trace_that_loses_something() {
    let folder = tempfile::tempdir().unwrap();
    let bad = put(
        &folder,
        "bad.json.gz",
        b"\x1f\x8b\x08\x00\0\0\0\0\0\xff\xff\xff\xff\xff",
    );
    for path in [Path::new("/no/such/trace.json"), folder.path(), &bad] {
        let ended = run(path);
        assert_eq!(ended.code, 2, "{}", path.display());
        assert!(
            ended.stderr.contains(path.to_str().unwrap()),
            "{}",
            ended.stderr
        );
    }
    let ended = Ended::of(trace_merge().args(["--check", "x", "--threads", "2"]));
    assert_eq!(ended.code, 2);
}

#[test]
fn a_folder_that_takes_no_temporary_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let spans: Vec<Value> = (0..100_000).map(|ts| span(json!({"ts": ts}))).collect();
    let plain = put(&folder, "plain.json", json!(spans).to_string());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"[]").unwrap();
    let packed = put(&folder, "packed.json.gz", encoder.finish().unwrap());
    for path in [plain, packed] {
        let mut command = trace_merge();
        command.arg("--check").arg(&path);
        let ended = Ended::of(command.env("TMPDIR", "/no/such/folder"));
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let words = "temporary file in /no/such/folder: No such file";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// Many times what is held in memory, so that it goes through files.
#[test]
fn what_is_sorted_in_files_is_found_like_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let at = |thread: u64, ts: u64| span(json!({"tid": thread, "ts": ts * 100, "dur": 101}));
    // Of three spans in a row the second clashes with the first, and the third with none that is shown.
    let spans = (0..300_000)
        .rev()
        .map(|number| at(1 + number % 7, number / 7));
    let text = json!(spans.collect::<Vec<_>>()).to_string();
    let report = report(&put(&folder, "many.json", text));
    assert_eq!(report["spans"], json!(300_000));
    let per_thread = |thread: u64| (300_000 - thread).div_ceil(7) / 2;
    let expected = (0..7).map(per_thread).sum();
    assert_eq!(lost(&report), counts([("overlap", expected)]));
}

#[test]
fn merged_traces_lose_nothing() {
    let test = "merged_traces_lose_nothing";
    let folder = tempfile::tempdir().unwrap();
    for run in [pypto::fixture()]
        .into_iter()
        .chain(pypto::recorded_runs(test))
    {
        let path = put(&folder, "merged.json", Merged::of(&[], &[&run]).bytes);
        let ended = Ended::of(trace_merge().arg("--check").arg(&path));
        assert_eq!(
            (ended.code, ended.stderr.contains("show them all")),
            (0, true),
            "{}: {}",
            run.display(),
            ended.stderr
        );
    }
}

#[test]
fn times_since_1970_with_decimals_are_imprecise() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"[{"ph":"X","pid":1,"tid":1,"ts":1763689523000050.074,"dur":10.3,"name":"a"}]"#;
    assert_eq!(
        check(&put(&folder, "epoch.json", text)),
        counts([("imprecise_time", 1)])
    );
}
