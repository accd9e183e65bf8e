//! Bounds of linked requests: memory, folders for temporary files, and ids per event.

use crate::invocation::{Merged, RunDir, trace_merge};
use crate::memory::{assert_below, peak_kib};
use crate::usage::merges;
use format_oracle::writer::line::On;
use serde_json::Value;

/// Writes requests that an API process and an engine know by different ids, each with a span in
/// both.
fn many_requests(many: u64) -> RunDir {
    let dir = RunDir::new();
    let write = |pid: u32, suffix: &str| {
        let on = On { pid, tid: pid };
        let lines: String = (0..many)
            .map(|number| {
                let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let args = format!(r#""request_id":"cmpl-{id:016x}{suffix}""#);
                let ts_ns = 5_000_000_000 + number * 10_000 + u64::from(pid) * 100;
                on.span(ts_ns, 50, "step", &args) + "\n"
            })
            .collect();
        dir.put(&pid.to_string(), lines.as_bytes());
    };
    write(10, "");
    write(20, "-0-0123abcd");
    dir
}

/// Merges into a file with these options, and returns the trace. Fails if that takes more memory
/// than the bound.
fn bounded(test: &str, dir: &RunDir, bound_kib: u64, options: &[&str]) -> String {
    let output = dir.path().join("out.json");
    let mut command = trace_merge();
    command.args(options).args(["--report", "none", "-o"]);
    command.arg(&output);
    let kib = peak_kib(command.arg(dir.path()));
    assert_below(bound_kib, kib, test);
    std::fs::read_to_string(&output).unwrap()
}

fn count(trace: &str, text: &str) -> u64 {
    let links = trace.lines().filter(|line| line.contains("sa_link"));
    links.filter(|line| line.contains(text)).count() as u64
}

/// The ids alone determine which requests have no arrows, and the report counts them.
#[test]
fn requests_beyond_the_memory_are_left_out_and_counted() {
    const MANY: u64 = 20_000;
    let dir = many_requests(MANY);
    let merged = |options: &[&str]| Merged::new(options, &[dir.path()]);
    let all = merged(&[]);
    assert_eq!(all.report.0["links"]["requests"], MANY);
    assert_eq!(all.report.0["links"]["requests_dropped"], Value::Null);
    for (memory, least) in [("16MiB", MANY / 4), ("2MiB", MANY / 32)] {
        let memory = ["--memory", memory];
        let [one, seven] =
            ["1", "7"].map(|threads| merged(&[&memory[..], &["--threads", threads]].concat()));
        assert!(one.bytes == seven.bytes);
        let trace = String::from_utf8(one.bytes).unwrap();
        let linked = count(&trace, r#"{"ph":"s","pid":10,"#);
        assert!((least..MANY).contains(&linked), "{memory:?}: {linked}");
        assert_eq!(count(&trace, r#"{"ph":"f","pid":20,"#), linked);
        assert_eq!(count(&trace, ""), 2 * linked);
        let links = &one.report.0["links"];
        let dropped = MANY - linked;
        let counts = ["requests", "events", "requests_dropped"].map(|key| links[key].as_u64());
        assert_eq!(counts, [linked, 2 * linked, dropped].map(Some));
        assert_eq!(*links, seven.report.0["links"]);
        let mut merge = trace_merge();
        let ended = merges(merge.args(memory).args(["-o", "-"]).arg(dir.path()));
        let message =
            format!("requests not linked, because --memory is too small: at least {dropped}\n");
        assert!(ended.stderr.contains(&message), "{}", ended.stderr);
    }
}

/// If many requests are left out, they are counted with a temporary file.
#[test]
fn many_workers_and_many_requests_take_bounded_memory() {
    let test = "many_workers_and_many_requests_take_bounded_memory";
    let many = 250_000;
    let dir = many_requests(many);
    let options = ["--threads", "8", "--memory", "400MiB"];
    let trace = bounded(test, &dir, 192 << 10, &options);
    assert_eq!(count(&trace, r#"{"ph":"s","pid":10,"#), many);
    assert_eq!(count(&trace, ""), 2 * many);
    let options = ["--threads", "8", "--memory", "64MiB"];
    bounded(test, &dir, 64 << 10, &options);
    // Without a folder for temporary files the trace has no arrows, unless the output's folder can
    // be used.
    let nowhere = |output: &str| {
        let mut command = trace_merge();
        command
            .env("TMPDIR", "/nowhere")
            .args(["--memory", "16MiB"]);
        merges(command.arg(dir.path()).args(["-o", output]))
    };
    let output = dir.path().join("out.json");
    nowhere(output.to_str().unwrap());
    let beside = std::fs::read_to_string(&output).unwrap();
    assert!(beside.contains("sa_link"));
    let ended = nowhere("-");
    let message = "requests are not linked: temporary file in /nowhere: No such file";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    let whole = String::from_utf8(ended.stdout).unwrap();
    assert!(!whole.contains("sa_link"));
    assert_eq!(whole.matches("\"step\"").count() as u64, 2 * many);
}

/// Nearly the maximum length of a line.
const LONG: usize = 16 << 20;

#[test]
fn an_event_of_millions_of_ids_takes_bounded_memory() {
    let dir = RunDir::new();
    let line = |ts: u32, ids: &str| {
        format!(
            r#"{{"name":"step","ph":"X","ts":{ts},"dur":5,"pid":10,"tid":10,"args":{{"request_ids":[{ids}]}}}}"#
        ) + "\n"
    };
    let numbers = (0..1_900_000).map(|number| number.to_string());
    let numbers = numbers.collect::<Vec<_>>().join(",");
    let same = vec!["1"; LONG / 2 - 200].join(",");
    assert!(numbers.len() < LONG && same.len() < LONG);
    let first = line(10, &same);
    let lines = first + &line(20, &numbers) + &line(30, &numbers) + &line(40, "5,1800000");
    dir.put("10", lines.as_bytes());
    let test = "an_event_of_millions_of_ids_takes_bounded_memory";
    let trace = bounded(test, &dir, 64 << 10, &[]);
    let events = trace.lines().filter(|line| line.contains("\"step\""));
    assert_eq!(events.count(), 4);
    // The ids 0 to 1023 of the second and the third event. 1 is in the first event too, and 5 in
    // the last one.
    let flows = trace.lines().filter(|line| line.contains("sa_link"));
    assert_eq!(flows.count(), 2 * 1024 + 2);
    let ended = merges(trace_merge().arg(dir.path()).args(["-o", "-"]));
    let message = "events with too many request ids, of which some are ignored: 3";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
}
