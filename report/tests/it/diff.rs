//! Two runs side by side.

use crate::reports::{fixture, has_words, of_text, report};
use trace_report::{
    IdleCause, Metric, MetricDiff, RunDiff, RunReport, compare, parse_condition, screen,
};

/// A run of `n` requests that take `us` and some, each with one step of the same length; between steps, the engine schedules for `gap_us`.
fn run(n: u64, us: u64, gap_us: u64, name: &str) -> RunReport {
    let (mut text, mut ts) = ("L 2 'pid 2'\nL 3 'NPU 0, pid 2'\n".to_owned(), 0);
    for number in 0..n {
        let dur = us + number % 7;
        let (step, kernel) = (ts + gap_us, dur - gap_us);
        text += &format!(
            "X 1 {ts}+{dur} http.request request_id=r{number}
            X 1 {ts}+{gap_us} scheduler.schedule
            X 3 {step}+{kernel} {name}\n"
        );
        ts += dur;
    }
    of_text(&text)
}

fn e2e(diff: &RunDiff) -> &MetricDiff {
    let mut metrics = diff.metrics.iter();
    metrics.find(|of| of.metric == Metric::E2e).unwrap()
}

#[test]
fn what_became_slower_is_told_with_its_cause() {
    let one = run(100, 1_000, 100, "matmul");
    let other = run(100, 1_200, 300, "matmul_v2");
    let diff = compare(&[one], &[other]);
    let e2e = e2e(&diff);
    assert!(e2e.is_clear(), "{e2e:?}");
    let expected = (1_200.0 + 2.95) / (1_000.0 + 2.95);
    assert!((e2e.ratio.unwrap() - expected).abs() < 1e-9, "{e2e:?}");
    assert_eq!(diff.idle[0].cause, IdleCause::Scheduling);
    assert!(diff.idle[0].other > diff.idle[0].one);
    let of = |name: &str| diff.names.iter().find(|of| of.name == name).unwrap();
    assert_eq!(of("scheduler.schedule").more_ns(), 100 * 200_000);
    assert!(of("matmul").other.is_none() && of("matmul_v2").one.is_none());
    let words = ["slower", "scheduling", "added", "gone"];
    has_words(&screen::diff_text(&diff), &words);
    let holds = |condition| parse_condition(condition).unwrap().holds(&diff);
    has_words(&holds("p95(e2e) > +5%").unwrap().unwrap(), &["became"]);
    assert_eq!(holds("p95(e2e) > +25%"), Ok(None));
    assert!(holds("mean(e2e) > 1100us").unwrap().is_some());
    assert!(holds("requests_per_s < -10%").unwrap().is_some());
    has_words(&holds("p95(tpot) > +5%").unwrap_err(), &["first"]);
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
    let of = |n, us| run(n, us, 100, "matmul");
    let diff = compare(&[of(10, 1_000), of(30, 1_000)], &[of(20, 2_000)]);
    assert_eq!((diff.runs, diff.requests), ((2, 1), (40, 20)));
    let e2e = e2e(&diff);
    assert_eq!((e2e.one.n, e2e.other.n), (40, 20));
    let is_twice = (e2e.ratio.unwrap() - 2.0).abs() < 0.01;
    assert!(e2e.is_clear() && is_twice, "{e2e:?}");
    let name = diff.names.iter().find(|of| of.name == "matmul").unwrap();
    let calls = [name.one.unwrap().ncall, name.other.unwrap().ncall];
    assert_eq!(calls, [20, 20]);
    assert!(screen::diff_text(&diff).starts_with("runs       2 and 1;"));
}
