//! Requests linked, in bounds: of memory, of folders for temporary files, of ids that an event may have.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::memory::{assert_below, peak_kib};
use crate::writer::line::On;
use std::path::Path;
use std::process::Command;

/// Requests that an API process and an engine know by different ids: more than the first pass holds in memory.
const MANY: u64 = 250_000;

fn many_requests() -> RunDir {
    let dir = RunDir::new();
    let write = |pid: u32, suffix: &str| {
        let on = On { pid, tid: pid };
        let lines: String = (0..MANY)
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

/// Merges into a file, with more options, and gives the trace, in bounded memory.
fn bounded(test: &str, dir: &RunDir, options: &[&str]) -> String {
    let output = dir.path().join("out.json");
    let mut command = trace_merge();
    command.args(options).args(["--report", "none", "-o"]);
    command.arg(&output);
    let kib = peak_kib(command.arg(dir.path()).spawn().unwrap());
    assert_below(64 << 10, kib, test);
    std::fs::read_to_string(&output).unwrap()
}

#[test]
fn what_memory_does_not_hold_goes_to_a_temporary_file() {
    let dir = many_requests();
    let test = "what_memory_does_not_hold_goes_to_a_temporary_file";
    let trace = bounded(test, &dir, &[]);
    let links: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("sa_link"))
        .collect();
    let of_phase = |phase: &str| links.iter().filter(|line| line.contains(phase)).count() as u64;
    assert_eq!(links.len() as u64, 2 * MANY);
    assert_eq!(of_phase(r#"{"ph":"s","pid":10,"#), MANY);
    assert_eq!(of_phase(r#"{"ph":"f","pid":20,"#), MANY);
    // Where the one folder takes no file, the trace's own does; without any the trace has no arrows, and the report says so.
    let output = dir.path().join("out.json");
    let ended = Ended::of(nowhere(&dir).arg("-o").arg(&output));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(std::fs::read_to_string(&output).unwrap() == trace);
    let ended = Ended::of(nowhere(&dir).args(["-o", "-"]));
    assert_eq!(ended.code, 0);
    let told = "requests are not linked: temporary file in /nowhere: No such file";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let whole = String::from_utf8(ended.stdout).unwrap();
    assert!(!whole.contains("sa_link"));
    assert_eq!(whole.matches("\"step\"").count() as u64, 2 * MANY);
}

#[test]
fn many_workers_that_share_the_ids_take_bounded_memory() {
    let test = "many_workers_that_share_the_ids_take_bounded_memory";
    let dir = many_requests();
    let [one, many] = ["1", "8"].map(|threads| bounded(test, &dir, &["--threads", threads]));
    assert!(one == many);
    assert_eq!(one.matches("sa_link").count() as u64, 2 * MANY);
}

fn nowhere(dir: &RunDir) -> Command {
    let mut command = trace_merge();
    command.env("TMPDIR", Path::new("/nowhere")).arg(dir.path());
    command
}

/// The longest line that there may be, nearly.
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
    let trace = bounded(test, &dir, &[]);
    let events = trace.lines().filter(|line| line.contains("\"step\""));
    assert_eq!(events.count(), 4);
    // 0 to 1023 of the second event, and of the third; 1 is in the first event too, and 5 in the last one.
    let flows = trace.lines().filter(|line| line.contains("sa_link"));
    assert_eq!(flows.count(), 2 * 1024 + 2);
    let ended = Ended::of(trace_merge().arg(dir.path()).args(["-o", "-"]));
    let told = "events with more ids of requests than count: 3";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}
