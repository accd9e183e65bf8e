//! The log of the simpler runtime beside fragments: spans of hosts on their processes, those of chips on rows of their own.

use crate::foreign::{WALL_NS, apart, fixture, run};
use crate::invocation::{Merged, RunDir};
use crate::trace::ns;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::json;

#[test]
fn a_log_of_simpler_lies_on_its_processes() {
    // Its first anchor: 2352188708674 ns are 1795228985127264334.
    let wall_ns = 1_795_228_985_127_264_334 - 2_352_188_708_674_i64;
    let (dir, process) = (
        RunDir::new(),
        Process {
            main: true,
            ..Process::new(19_626)
        },
    );
    let mut fragment = process.fragment();
    let span = process
        .main_thread()
        .span(2_352_423_916_964, 9, "recorded", "");
    let anchor = process.anchor(2_352_000_000_000);
    let at = anchor.find("\"realtime_ns\":").unwrap() + 14;
    // The wall clock was 40 ms off when the recorder read it: the monotonic clock is the same one all the same.
    let realtime = (wall_ns + 2_352_000_000_000 + 40_000_000).to_string();
    let anchor = format!(
        "{}{realtime}{}",
        &anchor[..at],
        &anchor[at + realtime.len()..]
    );
    fragment.block(0, 0, &stream(&[anchor, span]));
    fragment.write_here(&dir.fragments());
    let merged = Merged::of(&[], &[dir.path(), &fixture("simpler.log")]);
    let runs = merged.trace.all_named("chip.run.runner_run");
    let ours = runs.iter().find(|run| run["pid"] == 19_626).unwrap();
    assert_eq!(apart(&merged.trace, ours), 0);
    assert_eq!(ours["tid"], merged.trace.named("recorded")["tid"]);
    let foreign = &merged.report.0["foreign"][0];
    assert_eq!(
        (&foreign["method"], &foreign["unplaced"]),
        (&json!("host_clock"), &json!(0))
    );
    // 25 spans of hosts, 14 of chips, and the recorded one.
    assert_eq!(merged.report.phase("X"), 40);
    let walls = merged.trace.all_named("chip.run.runner_run.device_wall");
    assert_eq!(walls.len(), 2);
    for wall in walls {
        let (start, dur) = (ns(&wall["ts"]), ns(&wall["dur"]));
        let slack = wall["args"]["uncertainty_us"].as_i64().unwrap() * 1000;
        let within = runs.iter().any(|run| {
            let (from, len) = (ns(&run["ts"]), ns(&run["dur"]));
            (start - slack - 1000..=start + slack + 1000).contains(&from)
                && start + dur <= from + len
        });
        assert!(within, "{wall}");
    }
    let names: Vec<_> = merged.trace.process_names().into_values().collect();
    assert!(names.contains(&"Chip · serve.py".to_owned()), "{names:?}");
}

#[test]
fn a_log_without_recorded_processes_lies_where_its_anchors_say() {
    let begin_ns = 1_795_228_985_127_264_334 + (2_352_284_884_589 - 2_352_188_708_674_i64);
    let dir = run(7, 5_000_000_000);
    let merged = Merged::of(&[], &[dir.path(), &fixture("simpler.log")]);
    let first = merged.trace.all_named("node.submit")[0];
    let expected = begin_ns - (WALL_NS + 5_000_000_000);
    assert!(
        (apart(&merged.trace, first) - expected).abs() < 1_000,
        "{expected}"
    );
    assert_eq!(
        merged.report.0["foreign"][0]["clock"],
        "placed by its [CLOCK_ANCHOR]"
    );
}
