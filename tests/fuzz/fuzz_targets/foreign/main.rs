//! Reads arbitrary bytes as a foreign profiler's trace. There is no panic, and all events that serde_json reads are in the merged trace.
#![no_main]

mod document;
#[path = "../folder.rs"]
mod folder;

use document::{Expected, Shown};
use flate2::Compression;
use flate2::write::GzEncoder;
use folder::folder;
use format_oracle::writer::{Fragment, Process};
use libfuzzer_sys::fuzz_target;
use std::io::Write;
use std::path::Path;
use trace_merge::{Error, Offset, Options, Output, Report, merge};

fuzz_target!(
    init: {
        recorded().write_here(folder());
    },
    |data: &[u8]| {
        // The length selects the variant, so that real traces can be used as inputs without change.
        let (is_with_fragment, is_packed) = (data.len() & 1 == 1, data.len() & 6 == 6);
        let folder = folder();
        let path = folder.join("other.json");
        let written = if is_packed { packed(data) } else { data.to_owned() };
        std::fs::write(&path, written).expect("room");
        let merged = merge(&options(folder, &path, is_with_fragment));
        let expected = Expected::from_input(data);
        match merged {
            Ok(report) => check(expected, &report, is_with_fragment),
            Err(error) => check_error(expected, &error, is_with_fragment),
        }
    }
);

/// Creates a fragment that is merged together with the trace.
fn recorded() -> Fragment {
    let process = Process {
        main: true,
        ..Process::new(100)
    };
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(5_000_000_000));
    let span = process
        .main_thread()
        .span(5_000_000_000, 9_000, "recorded", "");
    fragment.line(&span);
    fragment
}

fn packed(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

fn options(folder: &Path, path: &Path, is_with_fragment: bool) -> Options {
    let mut options = Options {
        output: Output::File(folder.join("out.json")),
        settle: false,
        threads: 1,
        ..Options::new([path.to_owned()])
    };
    if is_with_fragment {
        options.paths.push(folder.join("trace.100.jsonl"));
        options.clocks.offsets.push(Offset {
            path: path.to_owned(),
            ns: 0,
        });
    }
    options
}

/// Asserts that only inputs without events are refused.
fn check_error(expected: Option<Expected>, error: &Error, is_with_fragment: bool) {
    let is_refusal = matches!(error, Error::NothingUsable(_) | Error::Usage(_));
    assert!(is_refusal, "{error}");
    let is_trace = expected.is_some_and(|expected| !expected.names.is_empty());
    assert!(
        !is_trace,
        "a good trace was refused (with a fragment: {is_with_fragment}): {error}"
    );
}

fn check(expected: Option<Expected>, report: &Report, is_with_fragment: bool) {
    let path = report.output.path.as_ref().expect("it has a name");
    let text = std::fs::read(path).expect("the trace is there");
    std::fs::remove_file(path).expect("it was there");
    let shown = Shown::read(&text);
    let reported = report.events.total + report.events_added;
    // The begin and the end of a span of length 0 become one complete span.
    let joined = reported - shown.events;
    let input = |phase| report.events.by_phase.get(&phase).copied().unwrap_or(0);
    assert!(
        joined <= input('B'),
        "{joined} events are missing from the trace"
    );
    if let Some(complete) = shown.complete {
        assert_eq!(complete, input('X') + joined, "complete spans");
    }
    let Some(mut expected) = expected else { return };
    if is_with_fragment {
        expected.names.push("recorded".to_owned());
    }
    expected.names.sort();
    assert!(shown.has_all(&expected.names), "an event was lost");
    if expected.is_all {
        assert_eq!(
            report.damage.total, 0,
            "damage in a good trace: {:?}",
            report.damage.list
        );
    }
}
