//! `--pid`, `--process`, `--name`, `--cat` and `--request`, held against a naive filter of what the naive reader shows.

use crate::filtered::{Asked, One, naive};
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::oracle;
use crate::random::{Rng, write_foreign, write_own};
use crate::window::{base_ns, comparable};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::collections::BTreeSet;

const CASES: u64 = 120;

/// Some options, each with one or two values.
fn ask(rng: &mut Rng) -> Asked<'static> {
    const ASKED: [(&str, &[&str]); 5] = [
        ("pid", &["100", "101", "200"]),
        ("process", &["serve", "foreign", "e"]),
        ("name", &["step", "step*", "token", "http*"]),
        ("cat", &["worker", "serving", "kernel"]),
        ("request", &["cmpl-1", "cmpl-2", "cmpl-40"]),
    ];
    let mut asked = Asked::new();
    while asked.is_empty() {
        for (option, values) in ASKED.iter().filter(|_| rng.one_in(3)).collect::<Vec<_>>() {
            let count = 1 + rng.below(2);
            let values = (0..count).map(|_| values[rng.below(values.len())].to_owned());
            asked.insert(option, values.collect());
        }
    }
    asked
}

/// A window every other time: its options, and its edges in ns from the begin of the run.
fn window(rng: &mut Rng) -> (Vec<String>, (i64, i64)) {
    if rng.one_in(2) {
        return (Vec::new(), (i64::MIN, i64::MAX));
    }
    let from_us = i64::try_from(rng.below(400_000)).unwrap();
    let to_us = from_us + 1 + i64::try_from(rng.below(400_000)).unwrap();
    let options = vec![format!("--from={from_us}us"), format!("--to={to_us}us")];
    (options, (1000 * from_us, 1000 * to_us))
}

fn random_run(rng: &mut Rng) -> RunDir {
    let dir = RunDir::new();
    for pid in 100..103 {
        write_own(rng, &dir.fragments(), pid, true);
    }
    write_foreign(rng, &dir.fragments(), 200, 40, true);
    for pid in [110, 111] {
        write_flows(rng, &dir, pid);
    }
    dir
}

/// Writes long spans of two names, and flows within and beside them.
fn write_flows(rng: &mut Rng, dir: &RunDir, pid: u32) {
    let process = Process::new(pid);
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    let mut lines = Vec::new();
    for number in 0..40 {
        let ts_ns = 5_000_000_000 + rng.next() % 900_000_000;
        let args = format!(r#""request_id":"cmpl-{}""#, rng.below(3));
        lines.push(match rng.below(3) {
            0 => {
                let name = ["step", "run"][number % 2];
                on.span(ts_ns, rng.next() % 90_000_000, name, &args)
            }
            _ => {
                let scope = ["local", "global"][rng.below(2)];
                on.flow(["s", "t", "f"][rng.below(3)], ts_ns, scope, rng.next() % 4)
            }
        });
    }
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
}

/// Every process and thread of a trace that has a name has an event as well.
pub(crate) fn assert_nothing_empty(merged: &Merged, what: &str) {
    let key = |event: &Value| (event["pid"].to_string(), event["tid"].to_string());
    let threads: BTreeSet<_> = merged.trace.shown().map(key).collect();
    let processes: BTreeSet<_> = threads.iter().map(|(pid, _)| pid).collect();
    for event in merged.trace.phase("M") {
        let (pid, tid) = key(event);
        let of_thread = event["name"].as_str().unwrap().starts_with("thread_");
        let has_event = processes.contains(&pid);
        let has_event = has_event && (!of_thread || threads.contains(&(pid, tid)));
        assert!(has_event, "{what}: {event}");
    }
    let told = merged.report.0["processes"].as_array().unwrap().len();
    assert_eq!(told, processes.len(), "{what}");
}

#[test]
fn a_filter_shows_what_a_naive_one_keeps() {
    let (mut flows, mut shown, mut refused, mut windows) = (0, 0, 0, 0);
    for seed in 0..CASES {
        let mut rng = Rng::new(seed);
        let dir = random_run(&mut rng);
        let asked = ask(&mut rng);
        let (window_options, edges) = window(&mut rng);
        let what = format!("seed {seed} {asked:?} {window_options:?}");
        let whole = oracle::read(&dir.fragments());
        let all: Vec<One> = whole.events.iter().map(One::of).collect();
        let mut arguments: Vec<String> = Vec::new();
        for (option, values) in &asked {
            arguments.extend(values.iter().map(|value| format!("--{option}={value}")));
        }
        let mut options = vec!["--no-settle"];
        let arguments = arguments.iter().chain(&window_options);
        options.extend(arguments.map(String::as_str));
        if !all.iter().any(|one| one.process_is_asked_for(&asked)) {
            let ended = Ended::of(trace_merge().args(&options).arg(dir.path()));
            let is_refused = ended.code == 2 && ended.stderr.contains("none that they name");
            assert!(is_refused || ended.code == 0, "{what}: {}", ended.stderr);
            refused += u64::from(is_refused);
            continue;
        }
        let found = Merged::of(&options, &[dir.path()]);
        let text = |event| comparable(event, base_ns(&found)).0;
        let mut texts: Vec<String> = found.trace.shown().map(text).collect();
        texts.sort_unstable();
        let within: Vec<One> = all.into_iter().filter(|one| one.reaches(edges)).collect();
        assert_eq!(texts, naive(&within, &asked, whole.base_ns), "{what}");
        assert_nothing_empty(&found, &what);
        let all = Merged::of(&["--no-settle"], &[dir.path()]);
        let [all, shown_events] = [&all, &found].map(|merged| merged.report.number("events_total"));
        let left_out = |by: &str| found.report.0[by]["events_left_out"].as_u64();
        let left_out = left_out("filter").unwrap() + left_out("window").unwrap_or(0);
        assert_eq!(all - shown_events, left_out, "{what}");
        let threads = if seed % 2 == 0 { "1" } else { "3" };
        let again = [options.as_slice(), &["--threads", threads]].concat();
        let again = Merged::of(&again, &[dir.path()]);
        assert_eq!(again.bytes, found.bytes, "{what}");
        windows += usize::from(!window_options.is_empty());
        flows += found.report.phase("s");
        shown += texts.len();
    }
    assert!(flows > 20 && shown > 500, "{flows} flows, {shown} events");
    assert!(refused < CASES / 4 && windows > 30, "{refused} {windows}");
}
