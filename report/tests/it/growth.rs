//! How times grow with the number of requests at once, and the orders of phases: small traces whose figures are known.

use crate::golden::{of_lines, of_lines_with};
use serde_json::{Value, json};
use trace_report::{Metric, ReportOptions, RunReport, Sizing, SizingRefusal, parse_slo, screen};

const ROUNDS: u64 = 24;
/// µs between rounds.
const PAUSE: u64 = 100;

fn at(name: &str, pid: u64, ts: u64, id: &str) -> Value {
    json!({"ph": "i", "pid": pid, "tid": 1, "ts": ts, "s": "t", "name": name, "args": {"request_id": id}})
}

/// 24 rounds of each number of requests at once, all of one round with the same times, in µs: to the first token, and to the end. The answer has 11 tokens.
fn rounds(numbers: &[u64], times: impl Fn(u64) -> (u64, u64)) -> Vec<Value> {
    let (mut lines, mut now) = (Vec::new(), 0);
    for (number, round) in numbers
        .iter()
        .flat_map(|n| (0..ROUNDS).map(move |nth| (*n, nth)))
    {
        let (ttft, e2e) = times(number);
        for nth in 0..number {
            let id = format!("r{number}-{round}-{nth}");
            lines.push(json!({"ph": "X", "pid": 9, "tid": 10 + nth, "ts": now, "dur": e2e, "name": "http.request", "args": {"request_id": id, "output_tokens": 11}}));
            lines.push(at("request.queued", 10, now + 1, &id));
            lines.push(at("request.token", 10, now + ttft - 1, &id));
            lines.push(at("request.token", 9, now + ttft, &id));
        }
        now += e2e + PAUSE;
    }
    lines
}

/// One to six at once: TTFT is 3 ms and 1 ms for each, E2E 10 ms and 2 ms for each.
pub(crate) fn swept() -> Vec<Value> {
    rounds(&[1, 2, 3, 4, 5, 6], |number| {
        (3_000 + 1_000 * number, 10_000 + 2_000 * number)
    })
}

/// Moments of a request in the engine, each a name and µs from a time on.
fn moments(id: &str, from: u64, moments: &str) -> Vec<Value> {
    let of = |moment: &str| {
        let (name, us) = moment.rsplit_once(' ').unwrap();
        let ts = from + us.parse::<u64>().unwrap();
        at(&format!("request.{}", name.trim()), 10, ts, id)
    };
    moments.split(',').map(of).collect()
}

/// Requests that went through the engine in several orders, two of them preempted.
pub(crate) fn preempted() -> Vec<Value> {
    let mut lines = Vec::new();
    let often = (0..5).map(|nth| 100 + 100 * nth);
    let often = often.map(|us| format!("preempted {us}, resumed {}", us + 50));
    let often = often.collect::<Vec<_>>().join(", ");
    for (nth, (id, of)) in (0..).zip([
        ("plain0", "queued 0, scheduled 10, token 200, token 900"),
        ("plain1", "queued 0, scheduled 30, token 200, token 900"),
        (
            "again",
            "queued 100, scheduled 150, token 250, preempted 400, resumed 600, token 700, token 900",
        ),
        // Scheduled in each step, and preempted before its first token; an old recorder has no `resumed`.
        (
            "early",
            "queued 100, scheduled 150, scheduled 160, preempted 200, scheduled 350, token 500, scheduled 510, token 900",
        ),
        // One token, at which it ends. And one that ends in the engine without a token.
        ("single", "queued 100, scheduled 150, token 250"),
        ("refused", "queued 100, finished 300"),
        // Preempted so often that the report shortens its list of phases.
        (
            "often",
            &format!("queued 0, scheduled 10, token 20, {often}, token 900"),
        ),
    ]) {
        let from = 500_000 * nth;
        lines.push(json!({"ph": "X", "pid": 9, "tid": 1 + from, "ts": from, "dur": 1_000, "name": "http.request", "args": {"request_id": id}}));
        lines.extend(moments(id, from, of));
    }
    // Its end is not here.
    let from = 10_000_000;
    lines.push(json!({"ph": "B", "pid": 9, "tid": 7, "ts": from, "name": "http.request", "args": {"request_id": "open"}}));
    lines.extend(moments("open", from, "queued 1, token 100"));
    lines
}

fn with_slo(lines: &[Value], slo: &str) -> RunReport {
    let options = ReportOptions {
        slo: Some(parse_slo(slo).unwrap()),
        ..ReportOptions::default()
    };
    of_lines_with(lines, &options)
}

fn sizing(report: &RunReport, of: Metric) -> &Sizing {
    report.sizing.iter().find(|found| found.of == of).unwrap()
}

fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs(),
        "{found} {expected}"
    );
}

#[test]
fn a_line_through_the_p95_says_how_many_keep_an_objective() {
    let report = with_slo(&swept(), "e2e=19ms,ttft=1s,tpot=500us");
    let e2e = sizing(&report, Metric::E2e);
    let points: Vec<(f64, u64, f64)> = e2e
        .points
        .iter()
        .map(|of| (of.concurrency, of.requests, of.p95_ns))
        .collect();
    let expected = (1..=6_u32).map(|number| {
        (
            f64::from(number),
            u64::from(number) * ROUNDS,
            1e7 + 2e6 * f64::from(number),
        )
    });
    assert_eq!(points, expected.collect::<Vec<_>>());
    let fit = e2e.fit.unwrap();
    near(fit.slope_ns, 2e6);
    near(fit.intercept_ns, 1e7);
    near(fit.r_squared, 1.0);
    // (19 − 10) / 2 = 4.5
    assert_eq!(
        (e2e.left_out, e2e.refused, e2e.concurrency, e2e.is_beyond),
        (0, None, Some(4), false)
    );
    // Nothing beyond six was seen.
    let ttft = sizing(&report, Metric::Ttft);
    near(ttft.fit.unwrap().slope_ns, 1e6);
    assert_eq!((ttft.concurrency, ttft.is_beyond), (Some(6), true));
    // (10 + 2n − 3 − n) / 10 = 0.7 + 0.1 n
    let tpot = sizing(&report, Metric::Tpot);
    near(tpot.fit.unwrap().intercept_ns, 7e5);
    assert_eq!((tpot.concurrency, tpot.is_beyond), (Some(0), false));
    // Between the queue and the engine's token, 2 µs less.
    near(
        sizing(&report, Metric::EngineTtft)
            .fit
            .unwrap()
            .intercept_ns,
        2_998_000.0,
    );
    let text = screen::text(&report);
    for words in [
        "p95 of E2E: 2.00 ms for each request under way, from 6 points (R² 1.00); 19.0 ms holds up to 4\n",
        "p95 of TTFT, frontend: 1.00 ms for each request under way, from 6 points (R² 1.00); 1.00 s holds up to 6, the highest point, and maybe beyond\n",
        "(R² 1.00); 500 µs does not hold even for one\n",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn no_advice_is_given_without_a_line() {
    let refusal = |lines: &[Value]| {
        let report = with_slo(lines, "e2e=19ms");
        let e2e = sizing(&report, Metric::E2e);
        assert_eq!((e2e.concurrency, e2e.is_beyond), (None, false));
        let text = screen::text(&report);
        assert!(text.contains("; no advice: "), "{text}");
        // Nobody asked for it.
        assert!(!screen::text(&of_lines(lines)).contains("p95 of E2E"));
        (e2e.points.len(), e2e.refused)
    };
    let even = |_: u64| (1_000, 10_000);
    assert_eq!(
        refusal(&rounds(&[3], even)),
        (1, Some(SizingRefusal::FewPoints))
    );
    assert_eq!(
        refusal(&rounds(&[1, 6], |n| (100, 10_000 * n))),
        (2, Some(SizingRefusal::FewPoints))
    );
    assert_eq!(
        refusal(&rounds(&[1, 2, 3], even)),
        (3, Some(SizingRefusal::NotRising))
    );
    // 10, 40, 10 and 20 ms at 1 to 4: slope 0, R² 0. With 30 ms at the end: slope 3, R² = 45 / 675.
    let jumps = |last: u64| {
        move |number: u64| match number {
            2 => (100, 40_000),
            4 => (100, last),
            _ => (100, 10_000),
        }
    };
    assert_eq!(
        refusal(&rounds(&[1, 2, 3, 4], jumps(20_000))),
        (4, Some(SizingRefusal::NotRising))
    );
    let rising = rounds(&[1, 2, 3, 4], jumps(30_000));
    assert_eq!(refusal(&rising), (4, Some(SizingRefusal::NotLinear)));
    let report = of_lines(&rising);
    let fit = sizing(&report, Metric::E2e).fit.unwrap();
    near(fit.slope_ns, 3e6);
    near(fit.r_squared, 45.0 / 675.0);
}

/// Two that overlap by half: each saw one and a half, which is two. Few of a kind are no point.
#[test]
fn a_number_at_once_is_a_mean_over_time() {
    let mut lines = Vec::new();
    for nth in 0..10_u64 {
        let mut request = |id: String, from: u64| {
            lines.push(json!({"ph": "X", "pid": 9, "tid": from, "ts": 1_000 * nth + from, "dur": 100, "name": "http.request", "args": {"request_id": id}}));
        };
        request(format!("one{nth}"), 0);
        request(format!("other{nth}"), 50);
        request(format!("alone{nth}"), 500);
    }
    let report = of_lines(&lines);
    let e2e = sizing(&report, Metric::E2e);
    assert_eq!((e2e.points.len(), e2e.left_out), (1, 10));
    assert_eq!(
        (e2e.points[0].concurrency, e2e.points[0].requests),
        (2.0, 20)
    );
    assert_eq!(
        (e2e.fit, e2e.refused),
        (None, Some(SizingRefusal::FewPoints))
    );
}

#[test]
fn phases_follow_each_other_from_the_queue_to_the_last_token() {
    let report = of_lines(&preempted());
    let found = report.phases.sequences.iter();
    let found: Vec<(&str, u64, i64, &[f64])> = found
        .map(|of| (&*of.sequence, of.requests, of.total_ns, &*of.phase_mean_ns))
        .collect();
    let often =
        "queue → prefill → decode → preempted → decode → preempted → decode → preempted → …";
    let us = |us: &[f64]| us.iter().map(|us| 1e3 * us).collect::<Vec<f64>>();
    let expected: [(&str, u64, i64, &[f64]); 6] = [
        (
            "queue → prefill → decode",
            2,
            1_800_000,
            &us(&[20.0, 180.0, 700.0]),
        ),
        (
            often,
            1,
            900_000,
            &us(&[10.0, 10.0, 80.0, 50.0, 50.0, 50.0, 50.0, 50.0]),
        ),
        (
            "queue → prefill → decode → preempted → decode",
            1,
            800_000,
            &us(&[50.0, 100.0, 150.0, 200.0, 300.0]),
        ),
        (
            "queue → prefill → preempted → prefill → decode",
            1,
            800_000,
            &us(&[50.0, 50.0, 150.0, 150.0, 400.0]),
        ),
        ("queue + prefill", 1, 200_000, &us(&[200.0])),
        ("queue → prefill", 1, 150_000, &us(&[50.0, 100.0])),
    ];
    assert_eq!(found, expected);
    assert_eq!(report.phases.n, 7);
    let text = screen::text(&report);
    for words in [
        "      1  14.3 %  800 µs  50.0 µs → 100 µs → 150 µs → 200 µs → 300 µs\n",
        "  1 order more (--csv phases)\n",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // One order alone says no more than its parts.
    assert!(!screen::text(&of_lines(&swept())).contains("phases"));
}
