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
    /// The args that the host program wrote.
    #[serde(default)]
    pub args: Args,
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
        assert_eq!((&self.damage, self.lost), (&Vec::new(), 0), "damage, lost");
        self.assert_own_pids();
        let expected = expected.iter();
        let expected = expected.map(|(label, count)| ((*label).to_owned(), *count));
        assert_eq!(self.counts(), expected.collect());
        self.assert_no_doubles();
    }

    /// Asserts that no span is there twice, and that those of which none is told to be lost are the first ones; with the counts right, none is missing then.
    fn assert_no_doubles(&self) {
        self.assert_none_twice();
        let counts = self.counts();
        let is_beyond = |work: &&Work| work.args.index >= counts[&work.args.label];
        let beyond = self.work.iter().find(is_beyond);
        let is_right = beyond.is_none() || self.lost > 0;
        assert!(is_right, "an index beyond the count: {beyond:?}");
    }

    /// Asserts that no span is there twice.
    fn assert_none_twice(&self) {
        let mut seen = BTreeSet::new();
        for Args {
            label,
            index,
            host_pid,
        } in self.work.iter().map(|work| &work.args)
        {
            let is_new = seen.insert((label, index, host_pid));
            assert!(is_new, "doubled: {label} {index} of {host_pid}");
        }
    }

    /// Asserts that every span stands under the pid that its host saw.
    pub fn assert_own_pids(&self) {
        let mut work = self.work.iter();
        let wrong = work.find(|work| work.pid != work.args.host_pid);
        assert_eq!(wrong, None, "recorded under another pid");
    }

    /// Asserts that `did` spans are either there or counted as lost, and that nothing else went wrong.
    pub fn assert_accounted(&self, did: u64) {
        self.assert_no_doubles();
        let (recorded, lost, damage) = (self.recorded(), self.lost, &self.damage);
        let is_right = recorded + lost == did && damage.is_empty();
        assert!(is_right, "{recorded} and {lost} lost of {did}, {damage:?}");
    }

    /// Asserts that the merged trace has the same spans and shows the same losses.
    pub fn assert_merged(&self, merged: &Merged) {
        let of_merged = (merged.spans(), merged.lost());
        assert_eq!(of_merged, (self.recorded(), self.lost), "spans and losses");
        assert_eq!(merged.losses() > 0, self.lost > 0, "losses as events");
        assert_eq!(merged.damage(), Vec::<String>::new());
    }

    /// The number of spans found.
    pub fn recorded(&self) -> u64 {
        self.work.len() as u64
    }

    /// The number of spans of each label.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for work in &self.work {
            *counts.entry(work.args.label.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// The pids under which a label was recorded.
    pub fn pids(&self, label: &str) -> BTreeSet<u32> {
        let of_label = self.work.iter().filter(|work| work.args.label == label);
        of_label.map(|work| work.pid).collect()
    }

    /// The one run id in the headers.
    pub fn run(&self) -> String {
        let runs = BTreeSet::from_iter(self.header_values("run"));
        assert_eq!(runs.len(), 1, "one run: {runs:?}");
        runs.iter().map(|run| run.trim_matches('"')).collect()
    }

    /// The values of one header key, fragment by fragment, as JSON.
    pub fn header_values(&self, key: &str) -> Vec<String> {
        let headers = self.headers.iter();
        headers.map(|header| header[key].to_string()).collect()
    }
}

/// The names in `<dir>/previous`, sorted.
pub fn previous_runs(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("previous")).into_iter();
    let entries = entries.flatten().flatten();
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
        None => drop(outcome.one_line()),
    }
}
