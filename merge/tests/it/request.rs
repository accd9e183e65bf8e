//! A request across processes: filters and windows with its flows, as Perfetto's trace processor takes them.

use crate::invocation::{Merged, RunDir, trace_merge};
use crate::joined::assert_nothing_empty;
use crate::links::{ms, run_of, span};
use crate::perfetto;
use crate::usage::{merges, refuses};
use format_oracle::writer::Process;
use serde_json::json;
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// Spans of two halves on a thread and by an id, some of them of the first request.
const HALVES: &str = r#"{"name":"outer","ph":"B","ts":5000000,"pid":70,"tid":71,"cat":"a","args":{"request_id":"cmpl-1"}}
{"name":"inner","ph":"B","ts":5001000,"pid":70,"tid":71,"cat":"b"}
{"name":"","ph":"E","ts":5002000,"pid":70,"tid":71}
{"name":"","ph":"E","ts":5003000,"pid":70,"tid":71}
{"name":"async","ph":"b","ts":5001000,"pid":70,"tid":71,"cat":"a","id":"0x7","args":{"request_id":"cmpl-1"}}
{"name":"async","ph":"e","ts":5004000,"pid":70,"tid":71,"cat":"a","id":"0x7"}
{"name":"async","ph":"b","ts":5005000,"pid":70,"tid":71,"cat":"a","id":"0x7"}
{"name":"async","ph":"e","ts":5006000,"pid":70,"tid":71,"cat":"a","id":"0x7"}
"#;

/// A request that goes from an API server to two workers, and another one beside it.
fn request_run() -> RunDir {
    let mut processes = Vec::new();
    for (pid, name, phase) in [
        (60, "APIServer", "s"),
        (61, "Worker-0", "t"),
        (62, "Worker-1", "f"),
    ] {
        let process = Process::new(pid);
        let (on, other) = (process.main_thread(), process.thread(pid + 10));
        let mut lines = vec![
            on.metadata("process_name", &format!(r#""name":"{name}""#)),
            other.metadata("thread_name", r#""name":"other""#),
        ];
        for (number, id) in [(0, "cmpl-1"), (1, "cmpl-2")] {
            let start = ms(100 * number + u64::from(pid - 60) * 10);
            let args = match pid {
                60 => format!(r#""external_id":"{id}""#),
                61 => format!(r#""request_ids":["{id}","cmpl-9"]"#),
                _ => format!(r#""request_id":"{id}""#),
            };
            lines.push(on.span(start, 8_000_000, "step", &args));
            lines.push(on.flow(phase, start + 1_000_000, "global", number + 1));
            lines.push(other.span(start, 1_000_000, "unrelated", ""));
        }
        processes.push((process, lines));
    }
    let dir = run_of(&processes);
    dir.put("70", HALVES.as_bytes());
    dir
}

fn phases(merged: &Merged) -> String {
    let shown = merged.trace.shown();
    let mut phases: Vec<&str> = shown.filter_map(|event| event["ph"].as_str()).collect();
    phases.sort_unstable();
    phases.concat()
}

#[test]
fn a_request_is_followed_with_its_flows() {
    let dir = request_run();
    let test = "a_request_is_followed_with_its_flows";
    for (arguments, expected) in [
        ("--request=cmpl-1", "BEXXXbefst"),
        ("--request=cmpl-2", "XXXfst"),
        ("--request=cmpl-9", "XX"),
        ("--request=cmpl-1 --request=cmpl-2", "BEXXXXXXbeffsstt"),
        ("--request=cmpl-2 --process=Worker*", "XX"),
        (
            "--request=cmpl-2 --process=APIServer --process=Worker-1",
            "XXfs",
        ),
        ("--process=API", "XXXX"),
        ("--pid=60 --pid=61", "XXXXXXXXsstt"),
        ("--name=inner", "BE"),
        ("--name=inner --name=as*", "BEbbee"),
        ("--cat=a", "BEbbee"),
        ("--name=st?p --cat=worker --to=50ms", "XXXfst"),
        ("--from=5ms --to=105ms", "XXXXXXXbefst"),
        ("--name=nothing", ""),
    ] {
        let options: Vec<&str> = arguments.split(' ').collect();
        let merged = Merged::of(&options, &[dir.path()]);
        assert_eq!(phases(&merged), expected, "{arguments}");
        if !arguments.starts_with("--from") {
            assert_nothing_empty(&merged, arguments); // a window alone keeps all names
        }
        if arguments == "--request=cmpl-1" {
            perfetto::assert_no_errors(test, &merged.bytes, &[arguments]);
        }
    }
}

#[test]
fn the_report_says_what_was_left_out_and_an_unknown_process_is_refused() {
    let dir = request_run();
    let mut merge = trace_merge();
    let ended = merges(merge.args(["--name=step", "--cat=worker"]).arg(dir.path()));
    let said = "left out: 17 events by --name step --cat worker";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let merged = Merged::of(&["--pid=60"], &[dir.path()]);
    let told = &merged.trace.document["otherData"]["filter"];
    assert_eq!(told["pids"], json!([60]));
    assert_eq!(*told, merged.report.0["filter"]);
    let said =
        "which has APIServer (pid 60), (no name) (pid 70), Worker-0 (pid 61), Worker-1 (pid 62)";
    for (arguments, said) in [
        (&["--process=Wroker"][..], said),
        (&["--pid=99"], said),
        (&["--verbatim", "--name=step"], "cannot be used with"),
    ] {
        refuses(trace_merge().args(arguments).arg(dir.path()), &[said]);
    }
}

#[test]
fn what_an_engine_adds_to_the_id_does_not_matter() {
    let process = Process::new(60);
    let on = process.main_thread();
    let ids = ["cmpl-1", "cmpl-1-0-1a2b3c4d", "cmpl-10", "cmpl-2-0"];
    let of_engine = |id: &str| span(on, 0, id, &format!(r#""request_id":"{id}""#));
    let mut lines: Vec<String> = ids.map(of_engine).to_vec();
    for (client, engine) in [("client-1", "cmpl-1"), ("client-2", "cmpl-2")] {
        let args = format!(r#""external_id":"{client}","request_id":"{engine}""#);
        lines.push(span(on, 10, client, &args));
    }
    let dir = run_of(&[(process, lines)]);
    for (asked, expected) in [
        ("cmpl-1", &["cmpl-1", "cmpl-1-0-1a2b3c4d", "client-1"][..]),
        ("1", &["cmpl-1", "cmpl-1-0-1a2b3c4d", "client-1"]),
        ("cmpl-1-0", &["cmpl-1-0-1a2b3c4d"]),
        ("client-1", &["cmpl-1", "cmpl-1-0-1a2b3c4d", "client-1"]),
        ("cmpl-2", &["cmpl-2-0", "client-2"]),
        ("cmpl-2-0", &["cmpl-2-0"]),
        ("client", &[ids[0], ids[1], ids[3], "client-1", "client-2"]),
        ("cmpl-3", &[]),
    ] {
        let argument = format!("--request={asked}");
        let merged = Merged::of(&[&argument, "--no-link-requests"], &[dir.path()]);
        let shown = merged.trace.shown();
        let names: Vec<&str> = shown.filter_map(|event| event["name"].as_str()).collect();
        assert_eq!(names, expected, "{asked}");
    }
    let merged = Merged::of(&["--request=client-2"], &[dir.path()]);
    let told = &merged.report.0["filter"];
    assert_eq!(told["request_aliases"], json!(["cmpl-2"]));
}

/// Two requests that share the steps of an engine and of a worker, each with an event of its own; `flows` are of the recorder, if it wrote any.
fn shared_steps(flows: bool) -> RunDir {
    let process = |(pid, name)| {
        let process = Process::new(pid);
        let on = process.main_thread();
        let mut lines = vec![on.metadata("process_name", &format!(r#""name":"{name}""#))];
        let flow = |lines: &mut Vec<String>, phase, at_ms, id: &str| {
            if flows {
                lines.push(on.flow(phase, ms(at_ms), "global", xxh3_64(id.as_bytes())));
            }
        };
        for (at_ms, id) in [(0, "r-1"), (10, "r-2")] {
            let args = format!(r#""request_id":"{id}""#);
            lines.push(span(on, at_ms, "add_request", &args));
            let is_first = pid == 60 && id == "r-1";
            flow(&mut lines, if is_first { "s" } else { "t" }, at_ms, id);
        }
        if pid == 60 {
            // The arrow of the other one begins in a step that both share.
            flow(&mut lines, "s", 20, "r-2");
        }
        for at_ms in [20, 30, 40, 50] {
            let args = r#""request_ids":["r-1","r-2"]"#;
            lines.push(on.span(ms(at_ms), 8_000_000, "step", args));
            flow(&mut lines, "t", at_ms, "r-1");
            flow(&mut lines, "t", at_ms, "r-2");
        }
        (process, lines)
    };
    run_of(&[(60, "EngineCore"), (61, "Worker")].map(process))
}

/// The ids of all events of flows.
fn arrow_ids(merged: &Merged) -> Vec<String> {
    let phases = ["s", "t", "f"].map(|phase| merged.trace.phase(phase));
    let arrows = phases.into_iter().flatten();
    arrows.map(|event| event["id"].to_string()).collect()
}

fn count_of(ids: &[String]) -> usize {
    ids.iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn arrows_of_other_requests_in_shared_steps_are_left_out() {
    for flows in [true, false] {
        let dir = shared_steps(flows);
        let merged = Merged::of(&["--request=r-1"], &[dir.path()]);
        // One in each event with the request's id, in both processes.
        let ids = arrow_ids(&merged);
        assert_eq!((ids.len(), count_of(&ids)), (10, 1), "{flows}: {ids:?}");
        let both = ["--request=r-1", "--request=r-2"];
        let both = arrow_ids(&Merged::of(&both, &[dir.path()]));
        // Up to the step in which the second one's flow starts, the merge draws its own.
        let expected = if flows { 3 } else { 2 };
        assert_eq!(count_of(&both), expected, "{flows}: {both:?}");
    }
}

#[test]
fn no_arrow_of_the_request_that_is_asked_for_is_lost() {
    let cases: [(&str, &[&str]); 4] = [
        // A shorter form of its id is another request of the step: the two are one flow.
        (r#""request_ids":["job","job-1"]"#, &["--request=job-1"]),
        (r#""request_ids":["jib","job-1"]"#, &["--request=job-1"]),
        // Only the client's id leads there, and nobody knows which of the engine's is meant.
        (
            r#""request_id":"e1","external_id":"c1""#,
            &["--request=c1", "--all-runs"],
        ),
        (
            r#""request_ids":["e1","e2"],"external_ids":["c1","c2"]"#,
            &["--request=c1"],
        ),
    ];
    for (args, options) in cases {
        // Steps of an engine and a worker.
        let dir = run_of(&[60, 61].map(|pid| {
            let process = Process::new(pid);
            let on = process.main_thread();
            let step = |nth: u64| on.span(ms(10 * nth), 8_000_000, "step", args);
            (process, [0, 1, 2, 3].map(step).to_vec())
        }));
        let arrows = arrow_ids(&Merged::of(options, &[dir.path()])).len();
        assert!(arrows >= 8, "{arrows} for {options:?} of {args}");
    }
}
