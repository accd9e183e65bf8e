//! Ranks on two hosts whose clocks differ. The report names a late rank only if the clocks are precise enough.

use crate::events::events;
use crate::reports::{has_words, report};
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use trace_merge::{ClockBy, ClockOptions, Options, Progress};
use trace_report::{ReportOptions, RunReport, read, screen};

const COLLECTIVES: i64 = 20;
const BASE_NS: i64 = 1_751_410_836_000_000_000;

/// Returns a trace as Kineto writes it: collectives of 100 µs about every 2 ms, and a kernel at either end. All times
/// are `late_us` later, and the collectives start `early_us` earlier. With a fixed period, it would be unknown which
/// collectives of two ranks belong together.
fn rank(late_us: i64, early_us: i64) -> Value {
    let last = late_us + 2_000 * (COLLECTIVES + 2) - 10;
    let mut text = format!(
        "P 0/0 python3 'GPU 0'
        X 0/7 {late_us}+10 gemm cat=kernel
        X 0/7 {last}+10 gemm cat=kernel\n"
    );
    for nth in 1..=COLLECTIVES {
        let ts = late_us + 2_000 * nth + nth * nth * 131 % 400 - early_us;
        let dur = 100 + early_us;
        text += &format!(
            "X 0/7 {ts}+{dur} ncclDevKernel_AllReduce_Sum_f32_RING_LL cat=kernel 'Collective name'=allreduce 'Process Group Name'='0' 'Process Group Ranks'='[0, 1]'\n"
        );
    }
    json!({"baseTimeNanoseconds": BASE_NS, "traceEvents": events(&text)})
}

fn files(ranks: &[Value], clocks: ClockOptions) -> (TempDir, Options) {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: usize| folder.path().join(format!("rank{number}.json"));
    for (number, rank) in ranks.iter().enumerate() {
        std::fs::write(path(number), rank.to_string()).unwrap();
    }
    let options = Options {
        clocks,
        ..Options::new((0..ranks.len()).map(path))
    };
    (folder, options)
}

fn report_from_ranks(ranks: &[Value], clocks: ClockOptions) -> RunReport {
    let (_folder, options) = files(ranks, clocks);
    read(&options, &ReportOptions::default(), &Progress::default()).unwrap()
}

/// Returns options that align clocks by wall-clock anchors alone.
fn by_anchors() -> ClockOptions {
    ClockOptions {
        by: ClockBy::Anchors,
        ..ClockOptions::default()
    }
}

/// Returns the evidence of each finding about a late rank.
fn late_ranks(report: &RunReport) -> Vec<&str> {
    let findings = report
        .findings
        .iter()
        .filter(|finding| finding.rule == "late_rank");
    findings.map(|finding| &*finding.evidence).collect()
}

/// Returns the figures of each rank: numbers of all, undecided and last collectives, then late and waited time.
fn figures(report: &RunReport) -> Vec<([u64; 3], [i64; 2])> {
    let ranks = report.rank.iter();
    let figures = ranks.map(|rank| {
        let counts = [rank.collectives, rank.undecided, rank.last];
        (counts, [rank.late_ns, rank.waited_ns])
    });
    figures.collect()
}

/// A merged trace keeps the uncertainty of its clocks.
#[test]
fn different_clocks_do_not_make_a_rank_late() {
    let ranks = [rank(0, 0), rank(5_000, 0)];
    // Wall clocks alone may each be wrong by 10 ms.
    let (folder, options) = files(&ranks, by_anchors());
    let output = folder.path().join("merged.json");
    trace_merge::merge(&Options {
        output: trace_merge::Output::File(output.clone()),
        ..options
    })
    .unwrap();
    for found in [report_from_ranks(&ranks, by_anchors()), report(output)] {
        assert_eq!(figures(&found), [([20, 20, 0], [0, 0]); 2]);
        assert!(late_ranks(&found).is_empty());
        let uncertainty_ns = found.rank[0].uncertainty_ns.unwrap();
        assert!((20_000_000..21_000_000).contains(&uncertainty_ns));
        has_words(&screen::text(&found), &["±20.0 ms"]);
    }
    // The collectives align the clocks.
    let found = report_from_ranks(&ranks, ClockOptions::default());
    assert_eq!(figures(&found), [([20, 20, 0], [0, 0]); 2]);
    assert!(late_ranks(&found).is_empty());
    assert!(found.rank[0].uncertainty_ns.unwrap() < 150_000);
}

#[test]
fn a_rank_that_is_later_than_the_clock_error_is_named() {
    // The first rank starts each collective 700 µs before the second, and waits for it.
    let found = report_from_ranks(&[rank(0, 700), rank(5_000, 0)], ClockOptions::default());
    let ranks = figures(&found);
    assert_eq!([ranks[0].0, ranks[1].0], [[20, 0, 0], [20, 0, 20]]);
    // The ends are within the transfer of 100 µs, and so is the uncertainty.
    let late_ns = ranks[1].1[0];
    assert!(late_ns.abs_diff(20 * 700_000) <= 20 * 150_000, "{late_ns}");
    let [late] = late_ranks(&found)[..] else {
        panic!("{:?}", found.findings)
    };
    has_words(late, &["clocks may be 0.1"]);
    has_words(&screen::text(&found), &["(clocks ±"]);
}

#[test]
fn waiting_is_limited_to_the_own_part_of_a_collective() {
    // The clocks are said to be exact but are 5 ms apart.
    let clocks = ClockOptions {
        wall_error: Some(Duration::from_nanos(1)),
        ..by_anchors()
    };
    let found = report_from_ranks(&[rank(0, 0), rank(5_000, 0)], clocks);
    let expected = [([20, 0, 0], [0, 2_000_000]), ([20, 0, 20], [2_000_000, 0])];
    assert_eq!(figures(&found), expected);
    assert!(found.findings.iter().all(|finding| finding.cost <= 1.0));
}
