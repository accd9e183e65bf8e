//! Whatever a document holds, what is merged from it passes `--check`, and Perfetto's trace processor loads it.

use crate::full::is_full;
use crate::mutated::document::{Document, document};
use crate::perfetto::loads;
use crate::random::Rng;
use std::path::{Path, PathBuf};
use trace_merge::check::{CheckReport, check};
use trace_merge::{Error, EventOptions, Layout, Mode, Options, Output, Report, merge};

/// Documents by default, and of these those that the trace processor loads.
const DOCUMENTS: u64 = 400;
const LOADED: u64 = 60;

/// All of them, and those loaded.
fn counts() -> (u64, u64) {
    let documents = || std::env::var("SA_TEST_DOCUMENTS").ok()?.parse().ok();
    match is_full() {
        true => (documents().unwrap_or(25_000), 1_500),
        false => (DOCUMENTS, LOADED),
    }
}

/// How a document is merged.
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

/// What is found in what was merged, and must not be.
fn found(checked: &CheckReport, is_verbatim: bool) -> Vec<&'static str> {
    if is_verbatim {
        // The lines are as they were recorded, but the trace loads.
        let found = (!checked.is_loaded).then_some("verbatim, and not loaded");
        return Vec::from_iter(found);
    }
    let lost = checked.findings.iter().map(|finding| finding.rule);
    lost.filter(|rule| !rule.is_of_recording())
        .map(|rule| rule.name())
        .collect()
}

/// Merges the document of a seed into `out.json`; nothing if nothing in it is usable.
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
fn issue_19_what_is_merged_passes_its_own_check_and_loads() {
    let test = "issue_19_what_is_merged_passes_its_own_check_and_loads";
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
