//! Checks a run that is already in the directory: which processes wrote nothing or died, and which of their rings are left.

use super::finding::{Check, Finding};
use crate::control::wall_ns;
use crate::status::run::Process;
use crate::words::{plural, printable, processes};
use sa_format::loss::Cause;
use sa_format::{
    REMOVED_FILE, RING_SUFFIX, RUN_FILE, RemovedRuns, RingKind, RunFile, is_ring_name,
    stem_and_segment,
};
use sa_recorder::RunPaths;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use trace_merge::Deaths;
use trace_merge::survey::{RunProcess, SegmentCache, has_exclusive_lock};

const RUN: Check = Check("run file");
const RINGS: Check = Check("rings");

/// Maximum number of processes that one line names.
const NAMED: usize = 8;
/// Hint if the preload library does not see everything.
const VISIBILITY_HINT: &str =
    "see docs/troubleshooting.md; the process checked this at its first launch";
/// Maximum number of bytes that are read to count losses.
const MOST_READ_BYTES: u64 = 1 << 30;

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    Ended,
    Died,
}

/// State of a process, from its headers, the ends of its fragments, and its rings. It is fast to read, however much the process recorded.
#[derive(Debug)]
struct Outline {
    pid: u32,
    /// Pid and program of the process.
    label: String,
    state: State,
    has_events: bool,
    has_heap_ring: bool,
    rings: usize,
}

impl Outline {
    fn read(process: &RunProcess) -> Outline {
        let mut fragments = process.fragments.iter();
        Outline {
            pid: process.header.pid,
            label: label(process),
            state: match process.is_alive() {
                _ if process.has_ended() => State::Ended,
                true => State::Live,
                false => State::Died,
            },
            has_events: fragments.any(|path| has_events(path).unwrap_or(true)),
            has_heap_ring: process.header.ring == RingKind::Heap,
            rings: process.rings(),
        }
    }
}

/// Checks the recorded files of the run at `paths`, and returns what it found for the doctor's
/// report.
pub(crate) fn examine(paths: &RunPaths) -> Vec<Finding> {
    let run = trace_merge::survey::processes(&paths.directory).unwrap_or_default();
    let mut outlines: Vec<Outline> = run.iter().map(Outline::read).collect();
    outlines.sort_by_key(|outline| outline.pid);
    let mut findings: Vec<Finding> = run_file(&paths.directory.join(RUN_FILE))
        .into_iter()
        .collect();
    if !outlines.is_empty() {
        findings.extend(process_findings(&outlines));
    }
    findings.extend(lone_rings(&paths.fragments));
    findings.extend(content_findings(&run));
    findings.extend(removed_runs(&paths.directory.join(REMOVED_FILE)));
    findings
}

/// Returns the findings about losses, calls that are not visible, and crashes. If reading the run would take too long, returns none.
fn content_findings(run: &[RunProcess]) -> Vec<Finding> {
    let files = run.iter().flat_map(|process| &process.fragments);
    let bytes = files.filter_map(|path| Some(path.metadata().ok()?.len()));
    if bytes.sum::<u64>() > MOST_READ_BYTES {
        return Vec::new();
    }
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for process in run {
        match Process::read(process, &mut SegmentCache::default(), wall_ns()) {
            Ok(process) => found.push(process),
            Err(_) => unreadable.push(label(process)),
        }
    }
    let not_visible = found.iter().flat_map(|process| {
        let pid = process.pid;
        let words = process.not_visible.iter();
        words.map(move |words| {
            Check("reach").warn(
                printable(&format!("process {pid}: {words}")),
                VISIBILITY_HINT,
            )
        })
    });
    let unreadable = named_warning(
        Check("unreadable"),
        &unreadable,
        "left out of the checks for crashes, losses and reach",
        "may this user read their fragments, and are they complete? trace-merge says what is wrong",
    );
    let all = crash(&found).chain(losses(&found)).chain(not_visible);
    all.chain(unreadable).collect()
}

/// Returns a finding for the processes that were killed, the first to die first, and another one for processes that ended by themselves with open
/// spans.
fn crash(found: &[Process]) -> impl Iterator<Item = Finding> {
    let deaths: Deaths = found.iter().filter_map(Process::dead).collect();
    let warn = |words, hint: &str| Check("crash").warn(words, hint);
    let killed_hint =
        "sa-profile report says in which step the first one died, and with which requests";
    let killed = deaths.killed_text().map(|words| warn(words, killed_hint));
    let exited_hint = "their logs say why they ended: sa-profile report shows when";
    let exited = deaths.exited_text().map(|words| warn(words, exited_hint));
    killed.into_iter().chain(exited)
}

fn losses(found: &[Process]) -> Option<Finding> {
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in found.iter().flat_map(|process| &process.lost) {
        let count_by_cause = lost.entry(cause).or_default();
        *count_by_cause = count_by_cause.saturating_add(*count);
    }
    for cause in Cause::ALL
        .into_iter()
        .filter(|cause| cause.changes_events())
    {
        lost.remove(cause.name()); // these events were recorded
    }
    let refused = lost
        .remove(Cause::ChildrenRefused.name())
        .map(|count| format!("{} could not record", processes(count)));
    let counts = lost
        .iter()
        .filter(|(_, events)| **events > 0)
        .map(|(cause, events)| format!("{} by {cause}", plural(*events, "event")));
    let found: Vec<String> = counts.chain(refused).collect();
    let hint = "trace-merge says whose events were lost and when";
    (!found.is_empty()).then(|| Check("losses").warn(found.join(", "), hint))
}

/// Returns a finding about earlier runs that were removed to make room.
fn removed_runs(path: &Path) -> Option<Finding> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    let removed: RemovedRuns = serde_json::from_str(&text).ok()?;
    let events = removed
        .runs
        .iter()
        .map(|run| run.events)
        .fold(0, u64::saturating_add);
    let named = removed.runs.iter().rev().take(NAMED).map(|run| {
        let about = if run.estimated { "about " } else { "" };
        format!("{} with {about}{} events", printable(&run.run), run.events)
    });
    let named: Vec<String> = named.collect();
    let count = removed.older_runs.saturating_add(removed.runs.len() as u64);
    (count > 0).then(|| {
        Check("removed runs").warn(format!(
                "{} with {} in all were removed to make room, the last ones {}",
                plural(count, "earlier run"),
                plural(events.saturating_add(removed.older_events), "event"),
                named.join(", ")
            ),
            "SA_PROFILE_OLD_RUNS says how many are kept; by default those of the last day, up to 20 or 1 GiB",
        )
    })
}

fn run_file(path: &Path) -> Option<Finding> {
    let file = File::open(path).ok()?;
    let mut text = String::new();
    (&file).take(64 << 10).read_to_string(&mut text).ok()?;
    let Ok(run) = serde_json::from_str::<RunFile>(&text) else {
        return Some(RUN.warn(
            format!("{} is not a run file", path.display()),
            "the next main process replaces it",
        ));
    };
    let (id, pid) = (run.run, run.main_pid);
    Some(match has_exclusive_lock(&file)? {
        true => RUN.ok(format!("run {id} of process {pid} is live")),
        false => RUN.warn(
            format!("run {id} is over: its main process {pid} is gone"),
            "nothing to do: the next main process replaces it",
        ),
    })
}

/// Returns true if any line is not metadata.
fn has_events(fragment: &Path) -> io::Result<bool> {
    let mut reader = BufReader::new(File::open(fragment)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader
            .by_ref()
            .take(16 << 20)
            .read_until(b'\n', &mut line)?
            == 0
        {
            return Ok(false);
        }
        if line.starts_with(b"{\"ph\":\"") && !line.starts_with(b"{\"ph\":\"M\"") {
            return Ok(true);
        }
    }
}

fn process_findings(outlines: &[Outline]) -> Vec<Finding> {
    let labels = |is_wanted: &dyn Fn(&Outline) -> bool| -> Vec<String> {
        let found = outlines.iter().filter(|one| is_wanted(one));
        found.map(|one| one.label.clone()).collect()
    };
    let state = |state| labels(&|one| one.state == state);
    let (live, ended, died) = (state(State::Live), state(State::Ended), state(State::Died));
    let counts = format!(
        "{}: {} live, {} ended, {} died",
        processes(outlines.len() as u64),
        live.len(),
        ended.len(),
        died.len()
    );
    // The ring of a dead process may contain everything that it recorded.
    let silent = labels(&|one| !one.has_events && (one.state != State::Died || one.rings == 0));
    let heap = labels(&|one| one.has_heap_ring);
    let found = [
        Some(Check("processes").ok(counts)),
        named_warning(
            Check("silent"),
            &silent,
            "wrote nothing but a header",
            "they started to record but had no event: is the level right, and did they get work?",
        ),
        named_warning(
            Check("died"),
            &died,
            match died.len() {
                1 => "ended without closing its recording",
                _ => "ended without closing their recordings",
            },
            "killed, crashed or ended by _exit: trace-merge says which, and shows the spans they died in; what they recorded is kept",
        ),
        left_rings(outlines),
        named_warning(
            RINGS,
            &heap,
            "without a ring file",
            "a kill loses what they had not yet written: see file system above",
        ),
    ];
    found.into_iter().flatten().collect()
}

/// Returns a warning that names the processes; `None` if the list is empty.
fn named_warning(check: Check, pids: &[String], what: &str, hint: &'static str) -> Option<Finding> {
    let found = || format!("{} {what}: {}", processes(pids.len() as u64), list(pids));
    (!pids.is_empty()).then(|| check.warn(found(), hint))
}

fn left_rings(outlines: &[Outline]) -> Option<Finding> {
    let dead = outlines.iter().filter(|one| one.state != State::Live);
    let left = dead.map(|one| one.rings as u64).sum();
    let found = format!("{} of dead processes", plural(left, "ring"));
    let hint = "trace-merge recovers their events and removes them";
    (left > 0).then(|| RINGS.warn(found, hint))
}

/// Returns the pid and the program of a process, for a list.
fn label(process: &RunProcess) -> String {
    printable(&format!(
        "{} ({})",
        process.header.pid,
        process.default_name()
    ))
}

fn list(pids: &[String]) -> String {
    match pids.len().checked_sub(NAMED) {
        None | Some(0) => pids.join(", "),
        Some(more) => format!("{} and {more} more", pids[..NAMED].join(", ")),
    }
}

/// Returns a finding about rings in the folder of the fragments that belong to no fragment.
fn lone_rings(folder: &Path) -> Option<Finding> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let stems = names.iter().filter_map(|name| stem_and_segment(name));
    let stems: BTreeSet<&str> = stems.map(|(stem, _)| stem).collect();
    let rings = names.iter().filter(|name| is_ring_name(name));
    let ring_stems = rings.filter_map(|name| name.strip_suffix(RING_SUFFIX));
    let lone = ring_stems.filter(|stem| !stems.contains(stem)).count() as u64;
    let found = format!("{} without a fragment", plural(lone, "ring"));
    (lone > 0).then(|| RINGS.warn(found, "their fragments were removed: remove them too"))
}
