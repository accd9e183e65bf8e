//! Fragments that pypto-serving's own recorder wrote: nothing lost, last names, lanes apart.

use crate::invocation::{Ended, Merged, trace_merge};
use crate::verbatim::assert_as_naive;
use crate::{linked_perfetto, links};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The fixture that is part of the repository.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pypto-one-worker")
}

/// The recorded runs beside the repository, if they are there.
pub(crate) fn recorded_runs(test: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/pypto-serving");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED {test}: no {}", folder.display());
        return Vec::new();
    };
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    runs.sort();
    runs
}

/// Every line of a run's fragments.
pub(crate) fn lines(run: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(run.join("fragments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let text: String = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn of_phase<'a>(lines: &'a [Value], phase: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["ph"] == phase).collect()
}

fn tracks<'a>(events: impl IntoIterator<Item = &'a Value>) -> BTreeSet<(String, String)> {
    events
        .into_iter()
        .map(|event| (event["pid"].to_string(), event["tid"].to_string()))
        .collect()
}

/// For each process, the sorted names of its threads.
fn threads(names: impl IntoIterator<Item = (String, String)>) -> Vec<Vec<String>> {
    let mut by_process: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (process, name) in names {
        by_process.entry(process).or_default().push(name);
    }
    let mut all: Vec<Vec<String>> = by_process.into_values().collect();
    all.iter_mut().for_each(|names| names.sort());
    all.sort();
    all
}

fn check(run: &Path) -> Merged {
    let lines = lines(run);
    let merged = Merged::of(&[], &[run]);
    let (trace, report) = (&merged.trace, &merged.report);
    for phase in ["X", "i"] {
        assert_eq!(
            trace.phase(phase).len(),
            of_phase(&lines, phase).len(),
            "{phase} in {}",
            run.display()
        );
        assert_eq!(report.phase(phase), of_phase(&lines, phase).len() as u64);
    }
    assert_eq!(
        report.number("events_total"),
        lines.len() as u64,
        "events equal lines in {}",
        run.display()
    );
    assert_eq!(report.number("damage_total"), 0);
    let shown: Vec<&Value> = lines.iter().filter(|line| line["ph"] != "M").collect();
    assert_eq!(
        tracks(trace.shown()).len(),
        tracks(shown.iter().copied()).len(),
        "lanes of {}",
        run.display()
    );
    let last_names: BTreeMap<String, String> = name_records(&lines, "process_name").collect();
    let mut expected: Vec<String> = last_names.into_values().collect();
    let mut found: Vec<String> = trace.process_names().into_values().collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let by_thread: BTreeMap<(String, String), String> = of_phase(&lines, "M")
        .iter()
        .filter(|line| line["name"] == "thread_name")
        .map(|line| {
            (
                (line["pid"].to_string(), line["tid"].to_string()),
                name(line),
            )
        })
        .collect();
    let expected = threads(by_thread.into_iter().map(|((pid, _), name)| (pid, name)));
    let found = threads(
        trace
            .thread_names()
            .into_iter()
            .map(|(thread, name)| (thread.split('/').next().unwrap().to_owned(), name)),
    );
    assert_eq!(found, expected);
    merged
}

fn name(line: &Value) -> String {
    line["args"]["name"].as_str().unwrap().to_owned()
}

fn name_records<'a>(
    lines: &'a [Value],
    record: &'a str,
) -> impl Iterator<Item = (String, String)> + 'a {
    lines
        .iter()
        .filter(move |line| line["ph"] == "M" && line["name"] == record)
        .map(|line| (line["pid"].to_string(), name(line)))
}

#[test]
fn the_recorded_runs_are_merged_linked_and_shown() {
    let test = "the_recorded_runs_are_merged_linked_and_shown";
    let mut runs = recorded_runs(test);
    runs.push(fixture());
    for run in runs {
        let merged = check(&run);
        assert_as_naive(&run.join("fragments"), test);
        let linked = links::check(&merged, test);
        eprintln!("{}: {linked} requests linked", run.display());
        let Some(slices) = linked_perfetto::check(test, &merged) else {
            continue;
        };
        let recorded = merged.report.phase("X") + merged.report.phase("i");
        assert_eq!(slices, recorded, "{}", run.display());
    }
}

#[test]
fn the_fixture_agrees_with_the_oracle() {
    let expected = crate::oracle::read(&fixture().join("fragments"));
    let merged = Merged::of(&[], &[&fixture()]);
    assert_eq!(expected.events.len(), 254);
    crate::trace::assert_same(&expected.events, &merged.trace.comparable(), "fixture");
    assert_eq!(merged.report.0["base_ns"], expected.base_ns);
    assert_eq!(merged.report.0["links"]["requests"], 12);
    let ended = Ended::of(trace_merge().arg(fixture()).args(["-o", "-"]));
    let linked = "12 requests linked through ";
    assert!(ended.stderr.contains(linked), "{}", ended.stderr);
}
