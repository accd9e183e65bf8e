//! Spans and samples of other profilers, as Perfetto shows them after a merge.

use crate::foreign::put;
use crate::invocation::{Merged, RunDir};
use crate::perfetto::{ERRORS, query_bytes};
use crate::split::split;
use crate::trace::ns;
use serde_json::{Value, json};

fn merged(options: &[&str], events: &Value) -> (RunDir, Merged) {
    let dir = RunDir::new();
    let path = put(&dir, "other.json", events.to_string().as_bytes());
    let merged = Merged::of(options, &[&path]);
    (dir, merged)
}

/// Asserts what Perfetto shows of the merged trace, and that it finds no error in it.
fn assert_shown(test: &str, events: &Value, statement: &str, expected: &Value) {
    let (_dir, merged) = merged(&[], events);
    if let Some(rows) = query_bytes(test, &merged.bytes, &[ERRORS, statement]) {
        assert!(rows[0].is_empty(), "{:?}", rows[0]);
        assert_eq!(json!(rows[1]), *expected, "{test}");
    }
}

/// Horovod writes ends without a name, and whole microseconds.
#[test]
fn an_end_without_a_name_ends_a_span_of_no_length() {
    let test = "an_end_without_a_name_ends_a_span_of_no_length";
    let horovod = json!([
        {"ph":"B","name":"ALLREDUCE","ts":10,"pid":1},
        {"ph":"B","name":"WAIT","ts":12,"pid":1,"args":{"rank":3}},
        {"ph":"E","ts":12,"pid":1,"args":{"dtype":"float32"}},
        {"ph":"E","ts":70,"pid":1},
    ]);
    let shown = "select s.name, s.dur, p.name, extract_arg(s.arg_set_id, 'args.rank'), extract_arg(s.arg_set_id, 'args.dtype') \
        from slice s left join slice p on p.id = s.parent_id order by s.ts, s.depth";
    let expected = json!([
        ["ALLREDUCE", 60_000, null, null, null],
        ["WAIT", 0, "ALLREDUCE", 3, "float32"],
    ]);
    assert_shown(test, &horovod, shown, &expected);
    let (_dir, shown) = merged(&[], &horovod);
    assert_eq!(shown.trace.phase("E").len(), 1);
}

/// There may be many such pairs, and their ends may be far from their begins.
#[test]
fn all_spans_of_no_length_get_the_args_of_their_ends() {
    const PAIRS: u64 = 20_000;
    // The first begin is in another chunk than its end.
    let far = 10 * PAIRS;
    let mut events = vec![json!({"ph":"B","name":"FAR","ts":far,"pid":1})];
    for nth in 0..PAIRS {
        let (ts, now) = (10 * nth, 10 * nth + 1);
        events.extend([
            json!({"ph":"B","name":"ALLREDUCE","ts":ts,"pid":1,"args":{"k":nth}}),
            json!({"ph":"B","name":"WAIT","ts":now,"pid":1,"args":{"k":nth,"of":"begin"}}),
            json!({"ph":"E","ts":now,"pid":1,"args":{"request_id":format!("r{nth}"),"k":null}}),
            json!({"ph":"E","ts":ts + 9,"pid":1,"args":{}}),
        ]);
    }
    events.push(json!({"ph":"E","ts":far,"pid":1,"args":{"far":true}}));
    let events = json!(events);
    for options in [&[][..], &["--sort"]] {
        let (_dir, shown) = merged(options, &events);
        assert_eq!(shown.trace.phase("E").len() as u64, PAIRS, "{options:?}");
        let waits = shown.trace.all_named("WAIT");
        assert_eq!(waits.len() as u64, PAIRS);
        for (wait, nth) in waits.into_iter().zip(0..) {
            let args = json!({"of":"begin","request_id":format!("r{nth}"),"k":null});
            assert_eq!((&wait["ph"], &wait["args"]), (&json!("X"), &args));
        }
        assert_eq!(shown.trace.named("FAR")["args"], json!({"far":true}));
    }
}

#[test]
fn samples_of_v8_are_shown_at_their_times() {
    let test = "samples_of_v8_are_shown_at_their_times";
    let part = |ts: u64, data: Value| json!({"ph":"P","name":"ProfileChunk","cat":"v8","id":"0x1","pid":7,"tid":7,"ts":ts,"args":{"data":data}});
    let frame =
        |id: u32, name: &str| json!({"id":id,"callFrame":{"functionName":name,"scriptId":1}});
    let mut child = frame(2, "work");
    child["parent"] = json!(1);
    let nodes = [frame(1, "(root)"), child];
    let names = json!({"cpuProfile":{"nodes":nodes}});
    let samples = json!({"cpuProfile":{"samples":[1, 2]},"timeDeltas":[10, 20]});
    let events = json!([
        {"ph":"X","name":"main","ts":5_000,"dur":1_000,"pid":7,"tid":7},
        part(5_100, json!({"startTime":5_100})),
        part(5_200, names),
        part(5_900, samples),
        part(6_000, json!({"endTime":5_900})),
    ]);
    let statement = "select s.ts, f.name from cpu_profile_stack_sample s join stack_profile_callsite c on c.id = callsite_id join stack_profile_frame f on f.id = c.frame_id order by 1";
    let expected = json!([[110_000, "(root)"], [130_000, "work"]]);
    assert_shown(test, &events, statement, &expected);
    let (_dir, shown) = merged(&[], &events);
    assert_eq!(shown.report.kind("unknown_phase"), 0);
    let parts = shown.trace.phase("P");
    let data = |nth: usize| &parts[nth]["args"]["data"];
    assert_eq!(ns(&data(0)["startTime"]), 100_000);
    assert_eq!(ns(&data(3)["endTime"]), 900_000);
    // Windows and parts of the trace contain the whole profile.
    for edge in ["--from=700us", "--to=200us"] {
        let (_dir, shown) = merged(&[edge], &events);
        assert_eq!(shown.trace.phase("P"), parts, "{edge}");
    }
    let spans = (0..300)
        .map(|nth| json!({"ph":"X","name":"span","ts":6_000 + nth,"dur":1,"pid":7,"tid":7}));
    let all = events.as_array().unwrap().iter().cloned().chain(spans);
    let (split_run, _) = merged(&[], &all.collect());
    let (split_parts, _) = split(&split_run.path().join("other.json"), &[], "8kB");
    assert!(split_parts.len() > 2);
    for part in split_parts {
        assert!(part.bytes.len() <= 8_000, "{}", part.bytes.len());
        assert_eq!(part.trace.phase("P"), parts);
    }
}

#[test]
fn an_empty_object_at_the_end_is_no_damage() {
    let event = r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}"#;
    for (text, damage) in [
        (format!(r#"{{"traceEvents":[{event},{{}}]}}"#), 0),
        (format!("[{event},\n{{ }}\n]"), 0),
        (format!("[{event},{{}},{event}]"), 1),
        (format!("[{event},{{}}"), 1),
    ] {
        let dir = RunDir::new();
        let path = put(&dir, "jax.json", text.as_bytes());
        let shown = Merged::of(&[], &[&path]);
        assert_eq!(shown.report.kind("bad_event"), damage, "{text}");
    }
}

/// Node.js writes 0 where it has measured nothing.
#[test]
fn cpu_times_that_are_all_0_are_left_out() {
    let span = |ts: u64, cpu_us: u64| json!({"ph":"X","name":"a","pid":1,"tid":1,"ts":ts,"dur":1,"tts":0,"tdur":cpu_us});
    let with_cpu_time = |events: &Value| {
        let (_dir, shown) = merged(&[], events);
        let spans = shown.trace.phase("X");
        let has_one = |span: &&&Value| span.get("tdur").is_some();
        spans.iter().filter(has_one).count()
    };
    assert_eq!(with_cpu_time(&json!([span(1, 0), span(3, 0)])), 0);
    assert_eq!(with_cpu_time(&json!([span(1, 0), span(3, 1)])), 2);
}
