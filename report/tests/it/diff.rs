//! Two runs side by side.

use crate::golden::{fixture, report};
use serde_json::{Value, json};
use std::path::Path;
use trace_report::{IdleCause, Metric, RunReport, compare, parse_condition, screen};

/// A run of `n` requests that take `us` and some, each with one step of the same length; between steps, the engine schedules for `gap_us`.
fn run(path: &Path, n: u64, us: u64, gap_us: u64, name: &str) -> RunReport {
    let mut lines: Vec<Value> = vec![
        json!({"ph": "M", "pid": 2, "tid": 1, "name": "process_labels", "args": {"labels": "pid 2"}}),
        json!({"ph": "M", "pid": 3, "tid": 1, "name": "process_labels", "args": {"labels": "NPU 0, pid 2"}}),
    ];
    let mut ts = 0;
    for number in 0..n {
        let dur = us + number % 7;
        let span = |pid: u64, name: &str, ts: u64, dur: u64, args: Value| json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": dur, "name": name, "cat": "c", "args": args});
        lines.push(span(
            1,
            "http.request",
            ts,
            dur,
            json!({"request_id": format!("r{number}")}),
        ));
        lines.push(span(1, "scheduler.schedule", ts, gap_us, json!({})));
        lines.push(span(3, name, ts + gap_us, dur - gap_us, json!({})));
        ts += dur;
    }
    std::fs::write(
        path,
        serde_json::to_vec(&json!({ "traceEvents": lines })).unwrap(),
    )
    .unwrap();
    report(path.to_owned())
}

#[test]
fn what_became_slower_is_told_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let one = run(&folder.path().join("one.json"), 100, 1_000, 100, "matmul");
    let other = run(
        &folder.path().join("other.json"),
        100,
        1_200,
        300,
        "matmul_v2",
    );
    let diff = compare(&[one], &[other]);
    let e2e = diff
        .metrics
        .iter()
        .find(|of| of.metric == Metric::E2e)
        .unwrap();
    assert!(e2e.is_clear(), "{e2e:?}");
    let expected = (1_200.0 + 2.95) / (1_000.0 + 2.95);
    assert!((e2e.ratio.unwrap() - expected).abs() < 1e-9, "{e2e:?}");
    assert_eq!(diff.idle[0].cause, IdleCause::Scheduling);
    assert!(diff.idle[0].other > diff.idle[0].one);
    let of = |name: &str| diff.names.iter().find(|of| of.name == name).unwrap();
    assert_eq!(of("scheduler.schedule").more_ns(), 100 * 200_000);
    assert!(of("matmul").other.is_none() && of("matmul_v2").one.is_none());
    let text = screen::diff_text(&diff);
    for words in ["slower", "scheduling", "added", "gone"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let holds = |condition| parse_condition(condition).unwrap().holds(&diff);
    assert!(holds("p95(e2e) > +5%").unwrap().unwrap().contains("became"));
    assert_eq!(holds("p95(e2e) > +25%"), Ok(None));
    assert!(holds("mean(e2e) > 1100us").unwrap().is_some());
    assert!(holds("requests_per_s < -10%").unwrap().is_some());
    let lacking = holds("p95(tpot) > +5%").unwrap_err();
    assert!(lacking.contains("first"), "{lacking}");
}

#[test]
fn a_run_against_itself_has_no_difference() {
    let one = report(fixture("serving.json"));
    let diff = compare(std::slice::from_ref(&one), std::slice::from_ref(&one));
    assert!(diff.metrics.iter().all(|of| !of.is_clear()));
    assert!(diff.metrics.iter().all(|of| of.ratio == Some(1.0)));
    assert!(diff.names.iter().all(|name| name.more_ns() == 0));
    assert!(!screen::diff_text(&diff).contains("slower"));
}

/// The requests of a side count together; names are those of the mean run.
#[test]
fn sides_may_have_several_runs() {
    let folder = tempfile::tempdir().unwrap();
    let of = |file: &str, n, us| run(&folder.path().join(file), n, us, 100, "matmul");
    let one = [of("one.json", 10, 1_000), of("two.json", 30, 1_000)];
    let other = [of("three.json", 20, 2_000)];
    let diff = compare(&one, &other);
    assert_eq!((diff.runs, diff.requests), ((2, 1), (40, 20)));
    let e2e = diff
        .metrics
        .iter()
        .find(|of| of.metric == Metric::E2e)
        .unwrap();
    assert_eq!((e2e.one.n, e2e.other.n), (40, 20));
    assert!(
        e2e.is_clear() && (e2e.ratio.unwrap() - 2.0).abs() < 0.01,
        "{e2e:?}"
    );
    let name = diff.names.iter().find(|of| of.name == "matmul").unwrap();
    assert_eq!(
        (name.one.unwrap().ncall, name.other.unwrap().ncall),
        (20, 20)
    );
    assert!(screen::diff_text(&diff).starts_with("runs       2 and 1;"));
}
