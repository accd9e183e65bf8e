//! A time window of a run can be found without reading the rest, both during recording and afterwards: each segment states how far back its contents begin.

use crate::host;
use e2e::host_support::{Merged, scratch, segment_bytes};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use trace_merge::{EventOptions, Mode, Moment, Options, Window};

/// Bound that results in segments of 1 MiB.
const BOUND: (&str, &str) = ("SA_PROFILE_MAX_MB", "16");
/// Spans of a thread per tenth of a second. A segment lasts for 0.9 s.
const SPANS: u64 = 720;
const SECONDS: u64 = 12;

/// Thread, number, start and end in ns of the host's clock.
type Spans = BTreeSet<(String, u64, i64, i64)>;

fn merge(dir: &Path, window: Window) -> (Merged, Spans) {
    let mut options = Options::new([dir.to_owned()]);
    options.mode = Mode::Events(EventOptions {
        window,
        ..EventOptions::default()
    });
    let merged: Merged = Merged::with(options);
    let base_ns = merged.report().clocks.base_ns;
    let span = |event: &Value| {
        let args = &event["args"];
        // A window cuts spans and records their whole times in args.
        let ns = |key: &str| {
            let whole_us = args[format!("sa_whole_{key}")].as_f64();
            (whole_us.or(event[key].as_f64()).unwrap() * 1000.0).round() as i64
        };
        let key = (args["label"].as_str()?.to_owned(), args["index"].as_u64()?);
        let start_ns = base_ns + ns("ts");
        Some((key.0, key.1, start_ns, start_ns + ns("dur")))
    };
    let events = merged.events().iter().filter(|event| event["ph"] == "X");
    let spans = events.filter_map(span).collect();
    (merged, spans)
}

/// Returns the window between two seconds of a run.
fn between(from_s: u64, to_s: u64) -> Window {
    let moment = |seconds| Some(Moment::FromStart(Duration::from_secs(seconds)));
    Window::Between {
        from: moment(from_s),
        to: moment(to_s),
        reach: Some(Duration::from_secs(3600)),
    }
}

/// Records a run and merges its third second meanwhile. Repeats if a slow machine left nothing more to record after that merge.
fn recorded_with_live_window() -> (TempDir, (Merged, Spans)) {
    for _ in 0..3 {
        let dir = scratch();
        let ticks = (10 * SECONDS).to_string();
        // The run also contains long spans, from 0.5 s to 3.5 s, which end after the windows that contain them.
        let host = host(dir.path(), &["long", &SPANS.to_string(), &ticks, "5", "35"]);
        let host = host.variable(BOUND.0, BOUND.1).start();
        sleep(Duration::from_millis(6_500));
        let live = merge(dir.path(), between(2, 3));
        let bytes = segment_bytes(dir.path());
        let _outcome = host.end().quiet();
        if segment_bytes(dir.path()) > bytes + 100_000 {
            return (dir, live);
        }
    }
    panic!("no run was still recording after 6.5 s");
}

#[test]
fn a_window_of_a_run_is_found_without_reading_the_rest() {
    let (dir, (live_merged, live)) = recorded_with_live_window();
    assert_eq!(live_merged.damage(), Vec::<String>::new());
    let (whole_merged, whole) = merge(dir.path(), Window::WholeRun);
    let long = whole.iter().filter(|span| !span.0.starts_with("thread-"));
    assert_eq!(long.count(), 3);
    assert_eq!(whole.len() as u64, SPANS * 10 * SECONDS + 3);
    let base_ns = whole_merged.report().clocks.base_ns;
    let name = |merged: &Merged| {
        let processes = &merged.report().processes;
        assert_eq!(processes.len(), 1);
        processes[0].name.clone()
    };
    for (from_s, to_s) in [(2, 3), (4, 5), (0, 1), (6, 7)] {
        let (merged, found) = merge(dir.path(), between(from_s, to_s));
        let second = |seconds: u64| base_ns + seconds as i64 * 1_000_000_000;
        let mut expected = whole.clone();
        expected.retain(|span| span.2 <= second(to_s) && span.3 >= second(from_s));
        assert_eq!(found, expected, "{from_s} s to {to_s} s");
        assert_eq!(merged.damage(), Vec::<String>::new());
        assert_eq!(name(&merged), name(&whole_merged));
        if from_s == 2 {
            assert_eq!(live, expected, "while it recorded");
            let unread = [&live_merged, &merged].map(|merged| {
                let window = merged.report().window.as_ref().unwrap();
                assert_eq!(window.reach_ns, None, "nothing can be missed");
                window.bytes_left_out
            });
            assert!(unread[0] > 1 << 20 && unread[1] > unread[0], "{unread:?}");
        }
    }
}
