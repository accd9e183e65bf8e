//! Whatever a document contains, a trace merged from it passes `--check`, and Perfetto's trace
//! processor loads it.

use crate::foreign::put;
use crate::full::is_full;
use crate::invocation::RunDir;
use crate::mutated::document::{Document, document};
use crate::mutated::event::{KEYS, ODD, event, object, set};
use crate::perfetto::{ERRORS, loads, query};
use crate::random::Rng;
use serde_json::Value;
use std::path::{Path, PathBuf};
use trace_merge::check::{CheckReport, check};
use trace_merge::{Error, EventOptions, Layout, Mode, Options, Output, Report, merge};

/// Phases, with one event of each.
const PHASES: &str = "XBEiIRCstfbneMScP";

/// Errors caused by events that were not recorded: ends without a begin, and flows on threads
/// without a span.
const OF_RECORDING: [&str; 4] = [
    "flow_no_enclosing_slice",
    "flow_duplicate_id",
    "flow_end_without_start",
    "flow_step_without_start",
];

/// Kinds of repair and damage that odd values cause.
const REPAIRED: &str = "repaired_number repaired_escape repaired_time repaired_key repaired_counter \
    repaired_arrow repaired_phase";
const DAMAGED: &str = "bad_event unknown_phase no_id bad_counter bad_name";

/// Default number of documents, and number of these that the trace processor loads.
const DOCUMENTS: u64 = 400;
const LOADED: u64 = 60;

/// Returns the number of documents, and the number of loaded ones.
fn counts() -> (u64, u64) {
    let documents = || std::env::var("SA_TEST_DOCUMENTS").ok()?.parse().ok();
    match is_full() {
        true => (documents().unwrap_or(25_000), 1_500),
        false => (DOCUMENTS, LOADED),
    }
}

/// Returns random options to merge a document.
fn options(folder: &Path, path: PathBuf, rng: &mut Rng) -> Options {
    let kind = rng.below(8);
    let layout = match kind {
        0 => Layout::Sorted { memory: 1 << 20 },
        _ => Layout::Recorded,
    };
    Options {
        output: Output::File(folder.join("out.json")),
        settle: false,
        threads: 1,
        mode: match kind {
            1 => Mode::Verbatim,
            _ => Mode::Events(EventOptions {
                layout,
                link_requests: kind != 2,
                ..EventOptions::default()
            }),
        },
        ..Options::new([path])
    }
}

/// Returns the findings in a merged trace that must not be there.
fn found(checked: &CheckReport, is_verbatim: bool) -> Vec<&'static str> {
    if is_verbatim {
        // The lines are as they were recorded, but the trace loads.
        let found = (!checked.is_loaded).then_some("verbatim, and not loaded");
        return Vec::from_iter(found);
    }
    let lost = checked.findings.iter().map(|finding| finding.rule);
    lost.filter(|rule| !rule.lacks_counterpart())
        .map(|rule| rule.name())
        .collect()
}

/// Merges the document of a seed into `out.json`. Returns `None` if nothing in it is usable.
fn merged(folder: &Path, seed: u64) -> Option<(Document, bool, Report)> {
    let mut rng = Rng::new(seed);
    let document = document(&mut rng);
    let path = folder.join(document.name);
    std::fs::write(&path, &document.text).unwrap();
    let options = options(folder, path.clone(), &mut rng);
    let result = merge(&options);
    std::fs::remove_file(path).unwrap();
    match result {
        Ok(report) => Some((document, options.mode == Mode::Verbatim, report)),
        Err(Error::NothingUsable(_) | Error::Usage(_)) => None,
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

#[test]
fn issue_19_merged_documents_pass_the_check_and_load() {
    let test = "issue_19_merged_documents_pass_the_check_and_load";
    let folder = tempfile::tempdir().unwrap();
    let (mut traces, mut repaired, mut damaged) = (0, 0, 0);
    let (documents, loaded) = counts();
    let mut paths = Vec::new();
    for seed in 0..documents {
        let Some((document, is_verbatim, report)) = merged(folder.path(), seed) else {
            continue;
        };
        let output = folder.path().join("out.json");
        let found = found(&check(&output).unwrap(), is_verbatim);
        let text = String::from_utf8_lossy(&document.text);
        assert!(found.is_empty(), "seed {seed}: {found:?}\n{text}");
        traces += 1;
        repaired += report.repairs.total;
        damaged += report.damage.total;
        if seed < loaded {
            let path = folder.path().join(format!("{seed}.json"));
            std::fs::rename(output, &path).unwrap();
            paths.push(path);
        }
    }
    assert!(traces > documents / 2 && repaired > traces / 4 && damaged > traces / 4);
    for paths in paths.chunks(500) {
        let loads = loads(test, paths).into_iter().flatten();
        let refused = paths.iter().zip(loads).find(|(_, loads)| !loads);
        assert_eq!(refused, None);
    }
}

/// Returns all combinations: the value replaces the good one, follows it or comes before it.
fn combinations() -> Vec<String> {
    let mut all = Vec::new();
    let long = format!("\"{}\"", "x".repeat(10_000));
    let digits = format!("1{}", "0".repeat(400));
    let deep = "[".repeat(100) + &"]".repeat(100);
    let values: Vec<&str> = ODD.split(' ').chain([&*long, &*digits, &*deep]).collect();
    for phase in PHASES.chars() {
        // Each event is on a thread of its own, so that they do not interfere.
        let members = |number: usize| {
            let mut members = event(phase, number);
            set(&mut members, "tid", &(1000 + number).to_string());
            members
        };
        for value in &values {
            let mut members = members(all.len());
            let inner = format!("{{\"v\":1,\"w\":{value},\"name\":{value}}}");
            set(&mut members, "args", &inner);
            all.push(object(&members, ""));
        }
        for key in KEYS.split(' ') {
            for value in &values {
                let mut members = members(all.len());
                let mut replaced = members.clone();
                set(&mut replaced, key, value);
                all.push(object(&replaced, ""));
                if all.len() % 7 == 0 {
                    members.insert(0, (key.to_owned(), (*value).to_owned()));
                    all.push(object(&members, ""));
                }
            }
        }
    }
    all
}

/// Every member of an event has every odd value, in every phase.
#[test]
fn issue_19_every_member_with_every_odd_value_loads() {
    let test = "issue_19_every_member_with_every_odd_value_loads";
    let all = combinations();
    assert!(all.len() > 3_700, "{}", all.len());
    let document = format!("{{\"traceEvents\":[{}]}}", all.join(",\n"));
    let lines = all.join("\n") + "\n";
    for (name, text) in [("trace.900.jsonl", lines), ("other.json", document)] {
        let dir = RunDir::new();
        let input = put(&dir, name, text.as_bytes());
        let path = dir.path().join("out.json");
        let options = Options {
            output: Output::File(path.clone()),
            ..Options::new([input])
        };
        let report = merge(&options).unwrap();
        assert_eq!(found(&check(&path).unwrap(), false), [""; 0], "{name}");
        let (repaired, damaged) = (&report.repairs.by_kind, &report.damage.by_kind);
        for (by_kind, kinds) in [(repaired, REPAIRED), (damaged, DAMAGED)] {
            let is_found = |kind: &str| by_kind.get(kind) > Some(&1);
            assert!(kinds.split(' ').all(is_found), "{by_kind:?}");
        }
        let counted = report.events.total + report.damage.total;
        assert_eq!(counted, all.len() as u64, "each is there or counted");
        let Some(rows) = query(test, &path, &[ERRORS]) else {
            return;
        };
        let lacks_counterpart = |row: &&Value| OF_RECORDING.contains(&row[0].as_str().unwrap());
        assert_eq!(rows[0].iter().find(|row| !lacks_counterpart(row)), None);
    }
}
