//! The log of the simpler runtime beside fragments: spans of hosts on their processes, those of chips on rows of their own.

use crate::foreign::{WALL_NS, apart, fixture, run};
use crate::invocation::{Merged, RunDir};
use crate::trace::ns;
use format_oracle::writer::Process;

#[test]
fn a_log_of_simpler_lies_on_its_processes() {
    // Its first anchor: 2352188708674 ns are 1795228985127264334.
    let wall_ns = 1_795_228_985_127_264_334 - 2_352_188_708_674_i64;
    let mut process = Process::new(19_626);
    process.main = true;
    let on = process.main_thread();
    let span = on.span(2_352_423_916_964, 9, "recorded", "");
    // The wall clock was 40 ms off when the recorder read it: the monotonic clock is the same one all the same.
    let monotonic_ns = 2_352_000_000_000_i64;
    let realtime_ns = wall_ns + monotonic_ns + 40_000_000;
    let args =
        format!(r#""monotonic_ns":{monotonic_ns},"realtime_ns":{realtime_ns},"uncertainty_ns":41"#);
    let anchor = on.metadata("sa_anchor", &args);
    let dir = RunDir::of_block(&process, &[anchor, span]);
    let merged = Merged::of(&[], &[dir.path(), &fixture("simpler.log")]);
    let runs = merged.trace.all_named("chip.run.runner_run");
    let ours = runs.iter().find(|run| run["pid"] == 19_626).unwrap();
    assert_eq!(apart(&merged.trace, ours), 0);
    assert_eq!(ours["tid"], merged.trace.named("recorded")["tid"]);
    let foreign = &merged.report.0["foreign"][0];
    assert_eq!(foreign["method"], "host_clock");
    assert_eq!(foreign["unplaced"], 0);
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
    assert!((apart(&merged.trace, first) - expected).abs() < 1_000);
    let clock = &merged.report.0["foreign"][0]["clock"];
    assert_eq!(clock, "placed by its [CLOCK_ANCHOR]");
}
