//! The host's spans as read by `format-oracle`, and the checks that all tests make on them.

use super::host::Outcome;
use super::merged::Merged;
use format_oracle::reader;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An event of a fragment. The host program's spans have the category `host`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Work {
    ph: String,
    #[serde(default)]
    cat: String,
    /// Pid of the event.
    pub pid: u32,
    /// Start in µs.
    #[serde(default)]
    pub ts: f64,
    /// Args that the host program wrote.
    #[serde(default)]
    pub args: Args,
}

/// Args of a span of the host program.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Args {
    /// Label of the place in the program that recorded the span.
    pub label: String,
    /// Number of the span among those with the same label, from 0.
    pub index: u64,
    /// Pid that the host program saw.
    pub host_pid: u32,
}

/// What `format-oracle` read from a recording.
#[derive(Debug)]
pub struct HostRecording {
    /// All spans of the host program.
    pub work: Vec<Work>,
    /// Number of events that the recorder reported as lost.
    pub lost: u64,
    /// Descriptions of unreadable data.
    pub damage: Vec<String>,
    /// Spans without an end.
    pub unfinished: Vec<Value>,
    /// Headers of all fragments.
    pub headers: Vec<Value>,
}

impl HostRecording {
    /// Reads the fragments of a run directory (or a folder of fragments).
    pub fn in_dir(dir: &Path) -> HostRecording {
        let mut recording = reader::read_dir_as::<Work>(dir);
        let is_work = |event: &Work| event.ph == "X" && event.cat == "host";
        recording.events.retain(is_work);
        HostRecording {
            work: recording.events,
            lost: recording.lost,
            damage: recording.damage,
            unfinished: recording.unfinished,
            headers: recording.headers,
        }
    }

    /// Reads the fragments of a run directory. Asserts that all `did` spans are recorded or counted as lost, and that the merged trace agrees.
    pub fn accounted(dir: &Path, did: u64) -> HostRecording {
        let found = HostRecording::in_dir(dir);
        found.assert_accounted(did);
        found.assert_merged(&Merged::newest(dir));
        found
    }

    /// Reads the fragments of the only previous run in a run directory.
    pub fn in_previous(dir: &Path) -> HostRecording {
        let runs = previous_runs(dir);
        assert_eq!(runs.len(), 1, "one previous run in {runs:?}");
        HostRecording::in_dir(&dir.join("previous").join(&runs[0]))
    }

    /// Asserts that every span in `(label, count)` exists exactly once under its own pid, and that there are no others.
    pub fn assert_exactly(&self, expected: &[(&str, u64)]) {
        assert_eq!((&self.damage, self.lost), (&Vec::new(), 0), "damage, lost");
        self.assert_own_pids();
        let expected = expected.iter();
        let expected = expected.map(|(label, count)| ((*label).to_owned(), *count));
        assert_eq!(self.counts(), expected.collect());
        self.assert_no_doubles();
    }

    /// Asserts that no span is duplicated. If no loss is reported, also asserts that indexes are below the count of their label, so that correct counts mean complete spans.
    fn assert_no_doubles(&self) {
        self.assert_none_twice();
        let counts = self.counts();
        let is_beyond = |work: &&Work| work.args.index >= counts[&work.args.label];
        let beyond = self.work.iter().find(is_beyond);
        let is_right = beyond.is_none() || self.lost > 0;
        assert!(is_right, "an index beyond the count: {beyond:?}");
    }

    /// Asserts that no span is duplicated.
    fn assert_none_twice(&self) {
        let mut spans = BTreeSet::new();
        for Args {
            label,
            index,
            host_pid,
        } in self.work.iter().map(|work| &work.args)
        {
            let is_new = spans.insert((label, index, host_pid));
            assert!(is_new, "duplicated: {label} {index} of {host_pid}");
        }
    }

    /// Asserts that every span has the pid that its host process saw.
    pub fn assert_own_pids(&self) {
        let mut work = self.work.iter();
        let wrong = work.find(|work| work.pid != work.args.host_pid);
        assert_eq!(wrong, None, "recorded under another pid");
    }

    /// Asserts that `did` spans are either recorded or counted as lost, and that there is no damage or duplicate.
    pub fn assert_accounted(&self, did: u64) {
        self.assert_no_doubles();
        let (recorded, lost, damage) = (self.recorded(), self.lost, &self.damage);
        let is_right = recorded + lost == did && damage.is_empty();
        assert!(is_right, "{recorded} and {lost} lost of {did}, {damage:?}");
    }

    /// Asserts that the merged trace contains the same spans and reports the same losses.
    pub fn assert_merged(&self, merged: &Merged) {
        let merged_counts = (merged.spans(), merged.lost());
        assert_eq!(
            merged_counts,
            (self.recorded(), self.lost),
            "spans and losses"
        );
        assert_eq!(merged.losses() > 0, self.lost > 0, "losses as events");
        assert_eq!(merged.damage(), Vec::<String>::new());
    }

    /// Returns the number of spans.
    pub fn recorded(&self) -> u64 {
        self.work.len() as u64
    }

    /// Returns the number of spans for each label.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for work in &self.work {
            *counts.entry(work.args.label.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// Returns the pids under which a label was recorded.
    pub fn pids(&self, label: &str) -> BTreeSet<u32> {
        let of_label = self.work.iter().filter(|work| work.args.label == label);
        of_label.map(|work| work.pid).collect()
    }

    /// Returns the run id, which must be the same in all headers.
    pub fn run(&self) -> String {
        let runs = BTreeSet::from_iter(self.header_values("run"));
        assert_eq!(runs.len(), 1, "one run: {runs:?}");
        runs.iter().map(|run| run.trim_matches('"')).collect()
    }

    /// Returns the value of one header key in each fragment, as JSON.
    pub fn header_values(&self, key: &str) -> Vec<String> {
        let headers = self.headers.iter();
        headers.map(|header| header[key].to_string()).collect()
    }
}

/// Returns the names in `<dir>/previous`, sorted.
pub fn previous_runs(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("previous")).into_iter();
    let entries = entries.flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Asserts that all `did` spans were recorded or counted as lost, either in the recording or in one line on stderr. Alternatively,
/// recording as a whole may have been refused with one line.
pub fn assert_accounted_or_off(dir: &Path, outcome: &Outcome, did: u64) {
    let found = dir
        .join("fragments")
        .is_dir()
        .then(|| HostRecording::in_dir(dir));
    match found.filter(|found| !found.headers.is_empty()) {
        // A fragment that was created but could not be removed may be left.
        Some(found) if outcome.stderr.contains("recording is off") => {
            assert_eq!(found.recorded(), 0, "{outcome:?}");
        }
        Some(found) if outcome.stderr.contains(" events of process ") => {
            // The fragments do not contain the loss, so any of the spans may be missing.
            found.assert_none_twice();
            let said = format!("sa-profile: {} events of process ", did - found.recorded());
            assert!(outcome.stderr.starts_with(&said), "{outcome:?}");
        }
        Some(_) => {
            HostRecording::accounted(dir, did);
        }
        None => drop(outcome.one_line()),
    }
}
