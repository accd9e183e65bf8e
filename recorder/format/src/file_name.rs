//! Names of the files and folders of a run, and the contents of its small files (FORMAT.md §1).

use serde::{Deserialize, Serialize};

/// Folder of the live run's fragments inside the run directory.
pub const FRAGMENTS_DIR: &str = "fragments";
/// Folder of earlier runs inside the run directory.
pub const PREVIOUS_DIR: &str = "previous";
/// Run directory used if none is given. `sa-profile run` creates a folder for each run in it.
pub const DEFAULT_DIRECTORY: &str = "profile_out";
/// File that names the live run, inside the run directory.
pub const RUN_FILE: &str = "run";
/// File in which a process that started before its main process writes the id of the run that the
/// main process is about to begin.
pub const NEXT_RUN_FILE: &str = "run.next";
/// File that lists the earlier runs that were removed, inside the run directory.
pub const REMOVED_FILE: &str = "removed";
/// The merged trace inside the run directory.
pub const TRACE_FILE: &str = "trace.json";
/// First part of every fragment's file name.
pub const FRAGMENT_PREFIX: &str = "trace.";
/// Last part of every fragment's file name.
pub const FRAGMENT_SUFFIX: &str = ".jsonl";
/// Last part of every ring's file name.
pub const RING_SUFFIX: &str = ".ring";
/// Length of the time at the start of a run id.
const RUN_TIME_BYTES: usize = "YYYYMMDD-HHMMSS".len();

/// The contents of `<dir>/run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// Run id.
    pub run: String,
    /// Pid of the main process inside its namespace.
    pub main_pid: u32,
    /// Start time of the main process in clock ticks since boot.
    pub start_time: u64,
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Inode of the main process's pid namespace.
    pub pid_ns: u64,
}

/// An earlier run whose fragments were removed to make room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRun {
    /// Run id.
    pub run: String,
    /// Fragments and segments that were removed.
    pub fragments: u64,
    /// Length of the removed fragments in bytes.
    pub bytes: u64,
    /// Number of events in the removed fragments.
    pub events: u64,
    /// True if the number of events was estimated from a part of them.
    #[serde(default)]
    pub estimated: bool,
    /// Time of the removal in ns of `CLOCK_REALTIME`.
    pub realtime_ns: u64,
}

/// The contents of `<dir>/removed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRuns {
    /// The most recently removed runs, oldest first.
    #[serde(default)]
    pub runs: Vec<RemovedRun>,
    /// Number of runs that were removed before these and are no longer listed.
    #[serde(default)]
    pub older_runs: u64,
    /// Number of events in those runs.
    #[serde(default)]
    pub older_events: u64,
}

/// Returns true if a file name is that of a fragment: `trace.*.jsonl`.
pub fn is_fragment_name(name: &str) -> bool {
    name.starts_with(FRAGMENT_PREFIX)
        && name.ends_with(FRAGMENT_SUFFIX)
        && name.len() > FRAGMENT_PREFIX.len() + FRAGMENT_SUFFIX.len() - 1
}

/// Returns true if a file name is that of a ring: `trace.*.ring`.
pub fn is_ring_name(name: &str) -> bool {
    name.starts_with(FRAGMENT_PREFIX) && name.ends_with(RING_SUFFIX)
}

/// Returns the file name of a segment. `stem` is the part that all files of a fragment share, such
/// as `trace.412`, and `segment` is the segment's number. The name of segment 0 contains no number.
pub fn segment_name(stem: &str, segment: u32) -> String {
    match segment {
        0 => format!("{stem}{FRAGMENT_SUFFIX}"),
        segment => format!("{stem}.s{segment}{FRAGMENT_SUFFIX}"),
    }
}

/// Returns the file name of a fragment's ring. `stem` is the part that all files of the fragment
/// share, such as `trace.412`.
pub fn ring_name(stem: &str) -> String {
    format!("{stem}{RING_SUFFIX}")
}

/// Splits the file name of a segment into the part that all files of its fragment share, such as
/// `trace.412`, and the segment number. Returns `None` for any other name.
pub fn stem_and_segment(name: &str) -> Option<(&str, u32)> {
    let whole = name
        .strip_suffix(FRAGMENT_SUFFIX)
        .filter(|_| is_fragment_name(name))?;
    let split = whole.rsplit_once(".s").and_then(|(stem, digits)| {
        let number: u32 = digits.parse().ok()?;
        (number > 0 && number.to_string() == digits && stem.len() > FRAGMENT_PREFIX.len())
            .then_some((stem, number))
    });
    Some(split.unwrap_or((whole, 0)))
}

/// Returns the name of the folder that `sa-profile run` creates for the run with this id: the time
/// at the start of the id, or the whole id if it does not start with a time.
pub fn run_folder_name(run: &str) -> &str {
    let time = run.get(..RUN_TIME_BYTES);
    time.filter(|time| is_run_time(time)).unwrap_or(run)
}

/// Returns true if `sa-profile run` could have given this name to a folder, for the run with the id
/// `run` or for a run that began at any time. If a name is already in use, the folder's name gets a
/// number: `20260102-030405-2`.
pub fn is_run_folder_name(name: &str, run: &str) -> bool {
    let is_number = |rest: &str| {
        let digits = rest.strip_prefix('-').unwrap_or_default();
        rest.is_empty() || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let after = |start: &str| name.strip_prefix(start).is_some_and(is_number);
    let time = name.get(..RUN_TIME_BYTES).filter(|time| is_run_time(time));
    time.is_some_and(after) || !run.is_empty() && after(run_folder_name(run))
}

/// Returns true if a text is a time as at the start of a run id: `YYYYMMDD-HHMMSS`.
fn is_run_time(text: &str) -> bool {
    text.len() == RUN_TIME_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_folders_are_recognised_by_their_names() {
        let named = run_folder_name("20260102-030405-1a2b3c4d");
        assert_eq!(named, "20260102-030405");
        assert_eq!(run_folder_name("some-job-of-mine-7"), "some-job-of-mine-7");
        for case in include_str!("../tests/run-folders.txt").lines() {
            let (expected, names) = case.split_once(' ').unwrap();
            let (name, run) = names.split_once(" of ").unwrap();
            assert_eq!(is_run_folder_name(name, run), expected == "yes", "{case}");
        }
    }

    #[test]
    fn segments_have_the_stem_of_their_fragment() {
        for (stem, segment, name) in [
            ("trace.12", 0, "trace.12.jsonl"),
            ("trace.12", 7, "trace.12.s7.jsonl"),
            ("trace.12.9f86", 10, "trace.12.9f86.s10.jsonl"),
        ] {
            assert_eq!(segment_name(stem, segment), name);
            assert_eq!(stem_and_segment(name), Some((stem, segment)));
        }
        for odd in "trace.7.s0 trace.7.s01 trace.7.sx trace.s3 trace.7.s99999999999".split(' ') {
            let name = format!("{odd}.jsonl");
            assert_eq!(stem_and_segment(&name), Some((odd, 0)));
        }
        assert_eq!(stem_and_segment("trace.12.ring"), None);
    }
}
