//! Fragments of pypto-serving's own recorder: nothing is lost, last names count, lanes stay apart.

use crate::invocation::Merged;
use crate::trace::assert_same;
use crate::verbatim::assert_as_naive;
use crate::{linked_perfetto, links};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the fixture that is part of the repository.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pypto-one-worker")
}

/// Returns the line of a span as that recorder writes it.
pub(crate) fn line(name: &str, ts: u64, dur: u64, args: &str) -> String {
    format!(
        r#"{{"name":"{name}","cat":"w","ph":"X","ts":{ts},"dur":{dur},"pid":7,"tid":8,"args":{{{args}}}}}"#
    )
}

/// Returns the recorded runs next to the repository, if they exist.
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

/// Returns for each process the names of its threads, sorted.
fn by_process(names: &BTreeMap<String, String>) -> Vec<Vec<&str>> {
    let mut by_process: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (thread, name) in names {
        let (process, _) = thread.rsplit_once('/').unwrap();
        by_process.entry(process).or_default().push(name);
    }
    let mut all: Vec<Vec<&str>> = by_process.into_values().collect();
    all.iter_mut().for_each(|names| names.sort_unstable());
    all.sort_unstable();
    all
}

/// Merges a run, and compares it with the naive reader.
fn check(run: &Path) -> Merged {
    let what = run.display().to_string();
    let expected = crate::oracle::read(&run.join("fragments"));
    let merged = Merged::new(&[], &[run]);
    let (trace, report) = (&merged.trace, &merged.report);
    assert_same(&expected.events, &trace.comparable(), &what);
    assert_eq!(report.0["base_ns"], expected.base_ns, "{what}");
    let lines = assert_as_naive(&run.join("fragments"), &what);
    assert_eq!(report.number("events_total"), lines, "{what}");
    assert_eq!(report.number("damage_total"), 0, "{what}");
    let sorted = |names: BTreeMap<String, String>| {
        let mut names: Vec<String> = names.into_values().collect();
        names.sort();
        names
    };
    let last_names = sorted(expected.process_names);
    assert_eq!(sorted(trace.process_names()), last_names, "{what}");
    let (found, threads) = (trace.thread_names(), expected.thread_names);
    assert_eq!(by_process(&found), by_process(&threads), "{what}");
    merged
}

#[test]
fn the_recorded_runs_are_merged_linked_and_shown() {
    let test = "the_recorded_runs_are_merged_linked_and_shown";
    let mut runs = recorded_runs(test);
    runs.push(fixture());
    for run in runs {
        let merged = check(&run);
        let linked = links::check(&merged, test);
        eprintln!("{}: {linked} requests linked", run.display());
        let Some(slices) = linked_perfetto::check(test, &merged) else {
            continue;
        };
        let recorded = merged.report.phase("X") + merged.report.phase("i");
        assert_eq!(slices, recorded, "{}", run.display());
    }
}
