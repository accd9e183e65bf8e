//! `--split`: names, files, and what cannot be.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::output::{names, run};
use crate::perfetto::{ERRORS, FLOWS, SLICES, number, query};
use crate::split::split;
use crate::trace::Trace;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use std::io::Read;

fn refused(arguments: &[&str], said: &[&str]) {
    let dir = run(2_000);
    let ended = Ended::of(trace_merge().args(arguments).arg(dir.path()));
    assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
    for said in said {
        assert!(
            ended.stderr.contains(said),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    assert_eq!(names(dir.path()), ["fragments"], "{arguments:?}");
}

#[test]
fn parts_that_cannot_be_are_refused() {
    refused(&["--split", "900"], &["900MB", "\"900\""]);
    refused(&["--split=900MB", "-o", "-"], &["standard output"]);
    refused(&["--split=900MB", "--verbatim"], &["cannot be used with"]);
    refused(
        &["--split=900MB", "-o", "/dev/null"],
        &["a file", "/dev/null"],
    );
    refused(
        &["--split=0.2kB"],
        &["at most 500", "such as of 1 MB", "200 bytes"],
    );
}

#[test]
fn parts_are_numbered_beside_the_default_output() {
    let dir = run(2_000);
    let said = |size: &str| {
        let ended = Ended::of(trace_merge().args(["--split", size]).arg(dir.path()));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stderr
    };
    let stderr = said("80kB");
    assert_eq!(
        names(dir.path()),
        ["fragments", "trace.1.json", "trace.2.json", "trace.3.json"]
    );
    assert!(
        stderr.contains("/trace.1.json to trace.3.json: 2000 events"),
        "{stderr}"
    );
    assert!(
        stderr.contains("  trace.1.json: 0.000000s to 0."),
        "{stderr}"
    );
    assert!(!stderr.contains("not parts"), "{stderr}");
    let stderr = said("900MB");
    assert!(stderr.contains("/trace.1.json: 2000 events"), "{stderr}");
    assert!(
        stderr.contains("not parts of this trace: trace.2.json, trace.3.json"),
        "{stderr}"
    );
    let first = std::fs::read(dir.path().join("trace.1.json")).unwrap();
    assert_eq!(Trace::parse(&first).shown().count(), 2_000);
    said("20kB");
    assert!(
        dir.path().join("trace.01.json").exists(),
        "more than nine sort"
    );
}

#[test]
fn packed_parts_hold_as_much_text_as_others() {
    let dir = run(20_000);
    let folder = tempfile::tempdir().unwrap();
    let merge = |name: &str| {
        let mut command = trace_merge();
        command.args(["-q", "--split=500kB", "-o"]);
        let ended = Ended::of(command.arg(folder.path().join(name)).arg(dir.path()));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    };
    merge("a.json");
    merge("b.json.gz");
    let found = names(folder.path());
    let (plain, packed) = found.split_at(found.len() / 2);
    assert!(plain.len() > 3 && plain.len() == packed.len(), "{found:?}");
    for (plain, packed) in plain.iter().zip(packed) {
        assert_eq!(
            packed,
            &plain.replace('a', "b").replace(".json", ".json.gz")
        );
        let packed = std::fs::read(folder.path().join(packed)).unwrap();
        let mut text = Vec::new();
        let mut member = flate2::bufread::GzDecoder::new(&packed[..]);
        member.read_to_end(&mut text).unwrap();
        assert_eq!(text, std::fs::read(folder.path().join(plain)).unwrap());
    }
}

#[test]
fn there_are_all_parts_or_none() {
    let dir = run(2_000);
    std::fs::create_dir(dir.path().join("trace.3.json")).unwrap();
    std::fs::write(dir.path().join("trace.1.json"), "old").unwrap();
    let ended = Ended::of(trace_merge().args(["--split", "80kB"]).arg(dir.path()));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("trace.3.json"), "{}", ended.stderr);
    assert_eq!(
        names(dir.path()),
        ["fragments", "trace.1.json", "trace.3.json"]
    );
    assert_eq!(
        std::fs::read(dir.path().join("trace.1.json")).unwrap(),
        b"old"
    );
}

#[test]
fn an_input_is_no_part() {
    let dir = run(10);
    let fragment = dir.fragments().join("trace.1.jsonl");
    std::fs::rename(dir.fragments().join("trace.90.jsonl"), &fragment).unwrap();
    let ended = Ended::of(
        trace_merge()
            .args(["--split=900MB", "-o"])
            .arg(dir.fragments().join("trace.jsonl"))
            .arg(&fragment),
    );
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("one of the inputs"),
        "{}",
        ended.stderr
    );
    assert_eq!(names(&dir.fragments()), ["trace.1.jsonl"]);
}

#[test]
fn what_cannot_be_cut_is_a_part_and_told() {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(9);
    for ts in 0..3 {
        let text = "x".repeat(20_000);
        fragment.line(&format!(
            r#"{{"ph":"i","pid":9,"tid":9,"ts":{ts},"s":"t","name":"a","args":{{"text":"{text}"}}}}"#
        ));
    }
    fragment.write_here(&dir.fragments());
    let ended = Ended::of(trace_merge().args(["--split=5kB"]).arg(dir.path()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let told = ended.stderr.matches("more than asked for").count();
    assert_eq!(told, 3, "{}", ended.stderr);
    assert_eq!(names(dir.path()).len(), 4);
}

/// Two processes, with a step each in every ms, and an arrow from each step of the one to the next step of the other; one step around all.
fn arrows_run(steps: u64) -> RunDir {
    let dir = RunDir::new();
    for (pid, ph, later) in [(10, "s", 0), (20, "f", 1)] {
        let process = Process::new(pid);
        let (on, mut fragment) = (process.main_thread(), process.fragment());
        let at = |step: u64| 5_000_000_000 + step * 1_000_000;
        let mut lines = vec![on.metadata("process_name", &format!(r#""name":"process {pid}""#))];
        for step in 0..steps {
            lines.push(on.span(at(step + later), 900_000, "step", ""));
            lines.push(on.flow(ph, at(step + later) + 1_000, "global", step));
        }
        lines.push(on.span(at(0), steps * 1_000_000 + 2_000_000, "around all", ""));
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    dir
}

#[test]
fn each_part_loads_alone() {
    let test = "each_part_loads_alone";
    let (steps, dir) = (2_000, arrows_run(2_000));
    let (parts, _) = split(dir.path(), &[], "100kB");
    let cuts = parts.len() as u64 - 1;
    assert!(cuts > 3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.json");
    let (mut slices, mut arrows) = (0, 0);
    for part in &parts {
        std::fs::write(&path, &part.bytes).unwrap();
        let around = "select count(*) from slice where name = 'around all'";
        let Some(rows) = query(test, &path, &[ERRORS, SLICES, FLOWS, around]) else {
            return;
        };
        assert!(rows[0].is_empty(), "{:?}", rows[0]);
        slices += number(&rows[1]);
        arrows += number(&rows[2]);
        assert_eq!(
            number(&rows[3]),
            2,
            "what lasts through all parts is in each"
        );
    }
    let again = slices - 2 * (steps + 1);
    assert!((2 * cuts..=4 * cuts).contains(&again), "{again}");
    assert!(
        (steps - cuts..steps).contains(&arrows),
        "{arrows}: an arrow over a cut is not drawn"
    );
}
