//! How times grow with the number of requests in flight, from small traces whose figures are known.

use crate::events::events;
use crate::reports::{has_words, report_from_events, report_from_events_with};
use serde_json::Value;
use std::collections::BTreeMap;
use trace_report::{Metric, ReportOptions, RunReport, Sizing, SizingRefusal, parse_slo, screen};

const ROUNDS: u64 = 24;
/// Time between rounds, in µs.
const PAUSE: u64 = 100;

/// Returns 24 rounds for each number of requests at once. All requests of a round have the same times to the first
/// token and to the end, in µs. The output has 11 tokens.
fn rounds(numbers: &[u64], times: impl Fn(u64) -> (u64, u64)) -> Vec<Value> {
    let (mut text, mut now) = (String::new(), 0);
    let rounds = numbers
        .iter()
        .flat_map(|n| (0..ROUNDS).map(move |nth| (*n, nth)));
    for (number, round) in rounds {
        let (ttft, e2e) = times(number);
        let (queued, token, received) = (now + 1, now + ttft - 1, now + ttft);
        for nth in 0..number {
            let (id, thread) = (format!("request_id=r{number}-{round}-{nth}"), 10 + nth);
            text += &format!(
                "X 9/{thread} {now}+{e2e} http.request {id} output_tokens=11
                i 10 {queued} request.queued {id}
                i 10 {token} request.token {id}
                i 9 {received} request.token {id}\n"
            );
        }
        now += e2e + PAUSE;
    }
    events(&text)
}

/// Returns rounds with one to six requests at once. TTFT is 3 ms plus 1 ms per request, and E2E is 10 ms plus 2 ms per
/// request.
pub(crate) fn growing_load() -> Vec<Value> {
    rounds(&[1, 2, 3, 4, 5, 6], |number| {
        (3_000 + 1_000 * number, 10_000 + 2_000 * number)
    })
}

fn with_slo(lines: &[Value], slo: &str) -> RunReport {
    let options = ReportOptions {
        slo: Some(parse_slo(slo).unwrap()),
        ..ReportOptions::default()
    };
    report_from_events_with(lines, &options)
}

fn sizing(report: &RunReport, metric: Metric) -> &Sizing {
    report
        .sizing
        .iter()
        .find(|found| found.of == metric)
        .unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64) {
    let is_near = (found - expected).abs() <= 1e-9 * expected.abs();
    assert!(is_near, "{found} {expected}");
}

#[test]
fn a_line_through_the_p95_gives_the_concurrency_for_an_objective() {
    let report = with_slo(&growing_load(), "e2e=19ms,ttft=1s,tpot=500us");
    let e2e = sizing(&report, Metric::E2e);
    let points = e2e.points.iter();
    let points = points.map(|point| (point.concurrency, point.requests, point.p95_ns));
    let expected = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|number| (number, 1e7 + 2e6 * number));
    let expected = (1..)
        .zip(expected)
        .map(|(n, (number, ns))| (number, n * ROUNDS, ns));
    assert!(points.eq(expected), "{:?}", e2e.points);
    let fit = e2e.fit.unwrap();
    near(fit.slope_ns, 2e6);
    near(fit.intercept_ns, 1e7);
    near(fit.r_squared, 1.0);
    // (19 − 10) / 2 = 4.5
    assert_eq!((e2e.left_out, e2e.refused), (0, None));
    assert_eq!((e2e.concurrency, e2e.is_beyond), (Some(4), false));
    // The trace has no data beyond six.
    let ttft = sizing(&report, Metric::Ttft);
    near(ttft.fit.unwrap().slope_ns, 1e6);
    assert_eq!((ttft.concurrency, ttft.is_beyond), (Some(6), true));
    // (10 + 2n − 3 − n) / 10 = 0.7 + 0.1 n
    let tpot = sizing(&report, Metric::Tpot);
    near(tpot.fit.unwrap().intercept_ns, 7e5);
    assert_eq!((tpot.concurrency, tpot.is_beyond), (Some(0), false));
    // From the queue to the engine's first token, times are 2 µs shorter.
    let engine = sizing(&report, Metric::EngineTtft).fit.unwrap();
    near(engine.intercept_ns, 2_998_000.0);
    let words = [
        "p95 of E2E: grows by 2.00 ms with each request in flight, from 6 points (R² 1.00); stays within 19.0 ms up to 4\n",
        "p95 of TTFT, frontend: grows by 1.00 ms with each request in flight, from 6 points (R² 1.00); stays within 1.00 s up to 6, the highest point, and maybe beyond\n",
        "(R² 1.00); even a single request exceeds 500 µs\n",
    ];
    let text = screen::text(&report);
    has_words(&text, &words);
    // A single sequence of phases is not shown, because it would only repeat the parts.
    assert!(!text.contains("phases"));
}

/// With 10, 40, 10 and 20 ms at 1 to 4 requests, the slope is 0 and R² is 0. With 30 ms at the end, the slope is 3 and
/// R² is 45 / 675.
#[test]
fn no_advice_is_given_without_a_line() {
    let e2e_ms = |times: &[(u64, u64)]| {
        let numbers: Vec<u64> = times.iter().map(|(number, _)| *number).collect();
        let times: BTreeMap<u64, u64> = times.iter().copied().collect();
        rounds(&numbers, |number| (100, 1_000 * times[&number]))
    };
    let jumps = [(1, 10), (2, 40), (3, 10), (4, 30)];
    for (e2e, points, refusal) in [
        (&[(3, 10)][..], 1, SizingRefusal::FewPoints),
        (&[(1, 10), (6, 60)], 2, SizingRefusal::FewPoints),
        (&[(1, 10), (2, 10), (3, 10)], 3, SizingRefusal::NotRising),
        (
            &[(1, 10), (2, 40), (3, 10), (4, 20)],
            4,
            SizingRefusal::NotRising,
        ),
        (&jumps, 4, SizingRefusal::NotLinear),
    ] {
        let lines = e2e_ms(e2e);
        let report = with_slo(&lines, "e2e=19ms");
        let found = sizing(&report, Metric::E2e);
        assert_eq!((found.concurrency, found.is_beyond), (None, false));
        assert_eq!(
            (found.points.len(), found.refused),
            (points, Some(refusal)),
            "{e2e:?}"
        );
        has_words(&screen::text(&report), &["; no advice: "]);
        // Without an objective, nothing is shown.
        assert!(!screen::text(&report_from_events(&lines)).contains("p95 of E2E"));
    }
    let report = report_from_events(&e2e_ms(&jumps));
    let fit = sizing(&report, Metric::E2e).fit.unwrap();
    near(fit.slope_ns, 3e6);
    near(fit.r_squared, 45.0 / 675.0);
}
