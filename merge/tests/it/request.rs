//! A request across processes: filters and windows with its flows, as Perfetto's trace processor takes them.

use crate::filter::assert_nothing_empty;
use crate::invocation::{Merged, RunDir, trace_merge};
use crate::perfetto;
use crate::usage::{merges, refuses};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::json;

/// A request that goes from an API server to two workers, and another one beside it.
fn request_run() -> RunDir {
    let dir = RunDir::new();
    let at = |ms: u64| 5_000_000_000 + ms * 1_000_000;
    let ms = 1_000_000;
    for (pid, name) in [(60, "APIServer"), (61, "Worker-0"), (62, "Worker-1")] {
        let process = Process::new(pid);
        let (on, other) = (process.main_thread(), process.thread(pid + 10));
        let mut fragment = process.fragment();
        let mut lines = vec![on.metadata("process_name", &format!(r#""name":"{name}""#))];
        lines.push(other.metadata("thread_name", r#""name":"other""#));
        for (number, id) in [(0, "cmpl-1"), (1, "cmpl-2")] {
            let start = at(100 * number + u64::from(pid - 60) * 10);
            let args = match pid {
                60 => format!(r#""external_id":"{id}""#),
                61 => format!(r#""request_ids":["{id}","cmpl-9"]"#),
                _ => format!(r#""request_id":"{id}""#),
            };
            lines.push(on.span(start, 8 * ms, "step", &args));
            let phase = ["s", "t", "f"][usize::try_from(pid - 60).unwrap()];
            lines.push(on.flow(phase, start + ms, "global", number + 1));
            lines.push(other.span(start, ms, "unrelated", ""));
        }
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    let mut foreign = format_oracle::writer::Fragment::foreign(70);
    for (ph, name, ts, rest) in [
        (
            "B",
            "outer",
            5_000_000,
            r#","cat":"a","args":{"request_id":"cmpl-1"}"#,
        ),
        ("B", "inner", 5_001_000, r#","cat":"b""#),
        ("E", "", 5_002_000, ""),
        ("E", "", 5_003_000, ""),
        (
            "b",
            "async",
            5_001_000,
            r#","cat":"a","id":"0x7","args":{"request_id":"cmpl-1"}"#,
        ),
        ("e", "async", 5_004_000, r#","cat":"a","id":"0x7""#),
        ("b", "async", 5_005_000, r#","cat":"a","id":"0x7""#),
        ("e", "async", 5_006_000, r#","cat":"a","id":"0x7""#),
    ] {
        foreign.line(&format!(
            r#"{{"name":"{name}","ph":"{ph}","ts":{ts},"pid":70,"tid":71{rest}}}"#
        ));
    }
    foreign.write_here(&dir.fragments());
    dir
}

fn phases(merged: &Merged) -> String {
    let phases = merged
        .trace
        .shown()
        .map(|event| event["ph"].as_str().unwrap());
    let mut phases: Vec<&str> = phases.collect();
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
        if arguments.ends_with("=cmpl-1") || arguments.starts_with("--cat") {
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
    let dir = RunDir::new();
    let process = Process::new(60);
    let thread = process.main_thread();
    let ids = ["cmpl-1", "cmpl-1-0-1a2b3c4d", "cmpl-10", "cmpl-2-0"];
    let known = [(10, "client-1", "cmpl-1"), (11, "client-2", "cmpl-2")];
    let line = |(number, id): (u64, &str)| {
        let at = 5_000_000_000 + number * 1_000_000;
        thread.span(at, 1_000, id, &format!(r#""request_id":"{id}""#))
    };
    let mut lines: Vec<String> = (0..).zip(ids).map(line).collect();
    lines.extend(known.map(|(number, client, engine)| {
        let at = 5_000_000_000 + number * 1_000_000;
        let args = format!(r#""external_id":"{client}","request_id":"{engine}""#);
        thread.span(at, 1_000, client, &args)
    }));
    let mut fragment = process.fragment();
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
    for (asked, expected) in [
        ("cmpl-1", &["cmpl-1", "cmpl-1-0-1a2b3c4d", "client-1"][..]),
        ("1", &["cmpl-1", "cmpl-1-0-1a2b3c4d", "client-1"]),
        ("cmpl-1-0", &["cmpl-1-0-1a2b3c4d"]),
        ("client-1", &["cmpl-1", "cmpl-1-0-1a2b3c4d", "client-1"]),
        ("cmpl-2", &["cmpl-2-0", "client-2"]),
        ("cmpl-2-0", &["cmpl-2-0"]),
        (
            "client",
            &[
                "cmpl-1",
                "cmpl-1-0-1a2b3c4d",
                "cmpl-2-0",
                "client-1",
                "client-2",
            ],
        ),
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
    let dir = RunDir::new();
    let at = |ms: u64| 5_000_000_000 + ms * 1_000_000;
    for (pid, name) in [(60, "EngineCore"), (61, "Worker")] {
        let process = Process::new(pid);
        let on = process.main_thread();
        let mut lines = vec![on.metadata("process_name", &format!(r#""name":"{name}""#))];
        let flow = |lines: &mut Vec<String>, phase, ms, id: &str| {
            if flows {
                let number = xxhash_rust::xxh3::xxh3_64(id.as_bytes());
                lines.push(on.flow(phase, at(ms), "global", number));
            }
        };
        for (ms, id) in [(0, "r-1"), (10, "r-2")] {
            let args = format!(r#""request_id":"{id}""#);
            lines.push(on.span(at(ms), 1_000_000, "add_request", &args));
            let is_first = pid == 60 && id == "r-1";
            flow(&mut lines, if is_first { "s" } else { "t" }, ms, id);
        }
        if pid == 60 {
            // The arrow of the other one begins in a step that both share.
            flow(&mut lines, "s", 20, "r-2");
        }
        for step in 0..4 {
            let ms = 20 + 10 * step;
            let args = r#""request_ids":["r-1","r-2"]"#;
            lines.push(on.span(at(ms), 8_000_000, "step", args));
            flow(&mut lines, "t", ms, "r-1");
            flow(&mut lines, "t", ms, "r-2");
        }
        let mut fragment = process.fragment();
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    dir
}

/// The ids of all events of flows.
fn arrow_ids(merged: &Merged) -> Vec<String> {
    let phases = ["s", "t", "f"].map(|phase| merged.trace.phase(phase));
    let arrows = phases.into_iter().flatten();
    arrows.map(|event| event["id"].to_string()).collect()
}

fn count_of(ids: &[String]) -> usize {
    ids.iter().collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn arrows_of_other_requests_in_shared_steps_are_left_out() {
    for flows in [true, false] {
        let dir = shared_steps(flows);
        let merged = Merged::of(&["--request=r-1"], &[dir.path()]);
        // One in each event with the request's id, in both processes.
        let ids = arrow_ids(&merged);
        assert_eq!((ids.len(), count_of(&ids)), (10, 1), "{flows}: {ids:?}");
        let both = arrow_ids(&Merged::of(
            &["--request=r-1", "--request=r-2"],
            &[dir.path()],
        ));
        // Up to the step in which the second one's flow starts, the merge draws its own.
        let expected = if flows { 3 } else { 2 };
        assert_eq!(count_of(&both), expected, "{flows}: {both:?}");
    }
}

/// Steps of an engine and a worker, all with these args.
fn steps_with(args: &str) -> RunDir {
    let dir = RunDir::new();
    for pid in [60, 61] {
        let process = Process::new(pid);
        let on = process.main_thread();
        let step = |ms: u64| on.span(5_000_000_000 + ms * 1_000_000, 8_000_000, "step", args);
        let lines: Vec<String> = (0..4).map(|nth| step(10 * nth)).collect();
        let mut fragment = process.fragment();
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    dir
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
        let dir = steps_with(args);
        let arrows = arrow_ids(&Merged::of(options, &[dir.path()])).len();
        assert!(arrows >= 8, "{arrows} for {options:?} of {args}");
    }
}
