//! The host's spans as the second reader finds them, and the checks that every test makes on them.

use super::host::Outcome;
use super::merged::Merged;
use format_oracle::reader;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An event of a fragment; a span of the host program is one of the category `host`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Work {
    ph: String,
    #[serde(default)]
    cat: String,
    /// The pid in the event.
    pub pid: u32,
    /// Start in µs.
    #[serde(default)]
    pub ts: f64,
    #[serde(default)]
    args: Args,
}

/// Args of a span of the host program.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Args {
    /// The place in the program that recorded it.
    pub label: String,
    /// Which one of that place, from 0.
    pub index: u64,
    /// The pid that the host saw.
    pub host_pid: u32,
}

impl std::ops::Deref for Work {
    type Target = Args;

    fn deref(&self) -> &Args {
        &self.args
    }
}

/// What was found of a recording.
#[derive(Debug)]
pub struct Found {
    /// Every span of the host program.
    pub work: Vec<Work>,
    /// Events that the recorder says it lost.
    pub lost: u64,
    /// What could not be read.
    pub damage: Vec<String>,
    /// Spans without an end.
    pub unfinished: Vec<Value>,
    /// The headers of all fragments.
    pub headers: Vec<Value>,
}

impl Found {
    /// Reads the fragments of a run directory (or a folder of fragments).
    pub fn in_dir(dir: &Path) -> Found {
        let mut recording = reader::read_dir_as::<Work>(dir);
        let is_work = |event: &Work| event.ph == "X" && event.cat == "host";
        recording.events.retain(is_work);
        Found {
            work: recording.events,
            lost: recording.lost,
            damage: recording.damage,
            unfinished: recording.unfinished,
            headers: recording.headers,
        }
    }

    /// Reads the fragments of a run directory, and asserts that `did` spans are either there or counted as lost, in the merged trace as well.
    pub fn accounted(dir: &Path, did: u64) -> Found {
        let found = Found::in_dir(dir);
        found.assert_accounted(did);
        found.assert_merged(&Merged::newest(dir));
        found
    }

    /// Reads the fragments of the one previous run in a run directory.
    pub fn in_previous(dir: &Path) -> Found {
        let runs = previous_runs(dir);
        assert_eq!(runs.len(), 1, "one previous run in {runs:?}");
        Found::in_dir(&dir.join("previous").join(&runs[0]))
    }

    /// Asserts that every span of `(label, count)` is there exactly once and under its own pid, and that nothing else is.
    pub fn assert_exactly(&self, expected: &[(&str, u64)]) {
        assert_eq!(self.damage, Vec::<String>::new());
        assert_eq!(self.lost, 0, "lost events");
        self.assert_own_pids();
        assert_eq!(
            self.counts(),
            expected
                .iter()
                .map(|(label, count)| ((*label).to_owned(), *count))
                .collect()
        );
        self.assert_no_doubles();
    }

    /// Asserts that no span is there twice, and that those of which none is told to be lost are the first ones; with the counts right, none is missing then.
    pub fn assert_no_doubles(&self) {
        self.assert_none_twice();
        for (label, count) in self.counts() {
            let beyond = self
                .work
                .iter()
                .find(|work| work.label == label && work.index >= count);
            assert!(
                beyond.is_none() || self.lost > 0,
                "an index beyond the count: {beyond:?}"
            );
        }
    }

    /// Asserts that no span is there twice.
    fn assert_none_twice(&self) {
        let mut seen = BTreeSet::new();
        for work in &self.work {
            assert!(
                seen.insert((&work.label, work.index, work.host_pid)),
                "doubled: {work:?}"
            );
        }
    }

    /// Asserts that every span stands under the pid that its host saw.
    pub fn assert_own_pids(&self) {
        let wrong = self.work.iter().find(|work| work.pid != work.host_pid);
        assert_eq!(wrong, None, "recorded under another pid");
    }

    /// Asserts that `did` spans are either there or counted as lost, and that nothing else went wrong.
    pub fn assert_accounted(&self, did: u64) {
        self.assert_no_doubles();
        let (recorded, lost) = (self.recorded(), self.lost);
        let damage = &self.damage;
        assert_eq!(
            recorded + lost,
            did,
            "recorded {recorded} + lost {lost} of {did}, damage {damage:?}"
        );
        assert!(
            damage.is_empty(),
            "all {did} are accounted for, but there is damage: {damage:?}"
        );
    }

    /// Asserts that the merged trace has the same spans and shows the same losses.
    pub fn assert_merged(&self, merged: &Merged) {
        assert_eq!(
            (merged.spans(), merged.lost()),
            (self.recorded(), self.lost),
            "the trace: spans and lost events"
        );
        assert_eq!(merged.losses() > 0, self.lost > 0, "losses as events");
        assert_eq!(merged.damage(), Vec::<String>::new());
    }

    /// The number of spans found.
    pub fn recorded(&self) -> u64 {
        u64::try_from(self.work.len()).expect("a count fits 64 bits")
    }

    /// The number of spans of each label.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for work in &self.work {
            *counts.entry(work.label.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// The pids under which a label was recorded.
    pub fn pids(&self, label: &str) -> BTreeSet<u32> {
        self.work
            .iter()
            .filter(|work| work.label == label)
            .map(|work| work.pid)
            .collect()
    }

    /// The one run id in the headers.
    pub fn run(&self) -> String {
        let runs: BTreeSet<&str> = self
            .headers
            .iter()
            .filter_map(|header| header["run"].as_str())
            .collect();
        assert_eq!(runs.len(), 1, "one run: {runs:?}");
        runs.first().map(|run| (*run).to_owned()).expect("one run")
    }

    /// The values of one header key, fragment by fragment.
    pub fn header_values(&self, key: &str) -> Vec<String> {
        self.headers
            .iter()
            .map(|header| header[key].to_string())
            .collect()
    }
}

/// The names in `<dir>/previous`, sorted.
pub fn previous_runs(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("previous"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Asserts that each of `did` spans was recorded or counted, in the recording or in one line that says how many are lost in all, or that recording was
/// refused as a whole with one line.
pub fn assert_accounted_or_off(dir: &Path, outcome: &Outcome, did: u64) {
    let found = dir.join("fragments").is_dir().then(|| Found::in_dir(dir));
    match found.filter(|found| !found.headers.is_empty()) {
        // A fragment that was begun and could not be removed again may be left.
        Some(found) if outcome.stderr.contains("recording is off") => {
            assert_eq!(found.recorded(), 0, "{outcome:?}");
        }
        Some(found) if outcome.stderr.contains(" events of process ") => {
            // The fragment does not say what is lost, so any of them may be.
            found.assert_none_twice();
            let said = format!("sa-profile: {} events of process ", did - found.recorded());
            assert!(outcome.stderr.starts_with(&said), "{outcome:?}");
        }
        Some(_) => {
            Found::accounted(dir, did);
        }
        None => assert_eq!(
            outcome.stderr.lines().count(),
            1,
            "recording is off and nobody was told: {outcome:?}"
        ),
    }
}
