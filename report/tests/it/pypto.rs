//! Fragments that pypto-serving's own recorder wrote: two replicas behind one API server, without device rows, tokens or moments of the scheduler.

use crate::reports::{fixture, has_words, report};
use trace_report::{IdleCause, screen};

#[test]
fn what_pypto_serving_recorded_is_reported() {
    let report = report(fixture("pypto-two-replicas"));
    assert_eq!((report.requests.n, report.requests.ok), (6, 6));
    assert_eq!((report.requests.e2e.n, report.requests.ttft.n), (6, 0));
    assert_eq!((report.worker.len(), report.device.len()), (2, 0));
    for (device, idle) in report.worker.iter().zip(&report.idle) {
        assert_eq!(idle.idle_ns, device.wall_ns - device.busy_ns);
        // Replicas have steps of their own.
        assert_eq!(idle.of(IdleCause::OtherRank), 0);
        assert!(idle.engine.is_some() && idle.waited_for.is_empty());
    }
    assert_eq!(report.slow_steps.len(), 10);
    let words = [
        "not in this trace: queue, prefill",
        "no device is recorded",
        "none recorded",
    ];
    has_words(&screen::text(&report), &words);
}
