//! Ranks on two hosts whose clocks differ: the report names a late rank only if the clocks allow it.

use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use trace_merge::{ClockBy, ClockOptions, Options, Progress};
use trace_report::{ReportOptions, RunReport, read};

const COLLECTIVES: i64 = 20;
const BASE_NS: i64 = 1_751_410_836_000_000_000;

/// Returns a trace as Kineto writes it: collectives of 100 µs about each 2 ms, with all times this late, and begun that much before; a kernel at either end.
/// With a fixed period, it would be unknown which collectives of two ranks belong together.
fn rank(late_us: i64, early_us: i64) -> Value {
    let event = |name: &str, ts: i64, dur: i64, args: Value| json!({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts + late_us, "dur": dur, "args": args});
    let mut events = vec![
        json!({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "python3"}}),
        json!({"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}}),
        event("gemm", 0, 10, json!({})),
        event("gemm", 2_000 * (COLLECTIVES + 2) - 10, 10, json!({})),
    ];
    for nth in 1..=COLLECTIVES {
        let args = json!({"Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"});
        events.push(event(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            2_000 * nth + nth * nth * 131 % 400 - early_us,
            100 + early_us,
            args,
        ));
    }
    json!({"baseTimeNanoseconds": BASE_NS, "traceEvents": events})
}

fn report(ranks: &[Value], clocks: ClockOptions) -> RunReport {
    let (_folder, options) = files(ranks, clocks);
    read(&options, &ReportOptions::default(), &Progress::default()).unwrap()
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

/// Clocks brought together by wall clocks alone.
fn by_anchors() -> ClockOptions {
    ClockOptions {
        by: ClockBy::Anchors,
        ..ClockOptions::default()
    }
}

fn late_ranks(report: &RunReport) -> Vec<&str> {
    let rules = report.findings.iter().map(|finding| finding.rule);
    rules.filter(|rule| *rule == "late_rank").collect()
}

/// Returns the figures of each rank: collectives, undecided, last, late, waited.
fn figures(report: &RunReport) -> Vec<(u64, u64, u64, i64, i64)> {
    let ranks = report.rank.iter();
    let figures = ranks.map(|rank| {
        let (collectives, undecided, last) = (rank.collectives, rank.undecided, rank.last);
        (collectives, undecided, last, rank.late_ns, rank.waited_ns)
    });
    figures.collect()
}

/// A merged trace keeps what its clocks may be off.
#[test]
fn clocks_that_differ_make_no_rank_late() {
    let ranks = [rank(0, 0), rank(5_000, 0)];
    // By wall clocks alone, which may be 10 ms wrong each.
    let (folder, options) = files(&ranks, by_anchors());
    let output = folder.path().join("merged.json");
    trace_merge::merge(&Options {
        output: trace_merge::Output::File(output.clone()),
        ..options
    })
    .unwrap();
    for found in [report(&ranks, by_anchors()), crate::golden::report(output)] {
        assert_eq!(figures(&found), [(20, 20, 0, 0, 0); 2]);
        assert!(late_ranks(&found).is_empty());
        let uncertainty_ns = found.rank[0].uncertainty_ns.unwrap();
        assert!((20_000_000..21_000_000).contains(&uncertainty_ns));
        let text = trace_report::screen::text(&found);
        assert!(text.contains("±20.0 ms"), "{text}");
    }
    // Their collectives bring them together.
    let found = report(&ranks, ClockOptions::default());
    assert_eq!(figures(&found), [(20, 20, 0, 0, 0); 2]);
    assert!(late_ranks(&found).is_empty());
    assert!(found.rank[0].uncertainty_ns.unwrap() < 150_000);
}

#[test]
fn a_rank_that_is_later_than_clocks_may_be_off_is_named() {
    // The first begins each collective 700 µs before the second, and waits for it.
    let found = report(&[rank(0, 700), rank(5_000, 0)], ClockOptions::default());
    let late_ns = figures(&found)[1].3;
    // The ends are within the transfer of 100 µs, and so is what is not known.
    assert!(late_ns.abs_diff(20 * 700_000) <= 20 * 150_000, "{late_ns}");
    let of = figures(&found)
        .iter()
        .map(|of| (of.0, of.1, of.2))
        .collect::<Vec<_>>();
    assert_eq!(of, [(20, 0, 0), (20, 0, 20)]);
    assert_eq!(late_ranks(&found).len(), 1);
    let mut findings = found.findings.iter();
    let late = findings.find(|of| of.rule == "late_rank").unwrap();
    assert!(late.evidence.contains("clocks may be 0.1"), "{late:?}");
    let text = trace_report::screen::text(&found);
    assert!(text.contains("(clocks ±"), "{text}");
}

#[test]
fn no_rank_waits_longer_than_its_part_of_a_collective_lasts() {
    // Clocks that are said to be right, and are 5 ms apart.
    let clocks = ClockOptions {
        wall_error: Some(Duration::from_nanos(1)),
        ..by_anchors()
    };
    let found = report(&[rank(0, 0), rank(5_000, 0)], clocks);
    assert_eq!(
        figures(&found),
        [(20, 0, 0, 0, 2_000_000), (20, 0, 20, 2_000_000, 0)]
    );
    assert!(found.findings.iter().all(|finding| finding.cost <= 1.0));
}
