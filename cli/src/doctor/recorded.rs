//! A run that is already in the directory: who wrote nothing, who died, and what they left behind.

use super::finding::{Check, Finding};
use crate::status::run::death;
use crate::words::{plural, printable, processes};
use sa_format::loss::Cause;
use sa_format::{
    End, FragmentHeader, REMOVED_FILE, RING_SUFFIX, RUN_FILE, Reach, Record, RemovedRuns, RingKind,
    RunFile, is_ring_name, ring_name, segment_name, stem_and_segment,
};
use sa_recorder::RunPaths;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use trace_merge::survey::{Contents, Known, RunProcess, has_exclusive_lock, is_alive_here};
use trace_merge::{DeadProcess, Deaths};

const RUN: Check = Check("run file");
const RINGS: Check = Check("rings");

/// Most processes that are named in one line.
const NAMED: usize = 8;
/// What is to be done where the preload library does not see everything.
const REACH_HINT: &str = "docs/troubleshooting.md: it looked at its first launch";
/// No more is read to count losses.
const MOST_READ_BYTES: u64 = 1 << 30;
/// Where the last record of a fragment is looked for.
const TAIL_BYTES: u64 = 64 << 10;

/// How the process of a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    Ended,
    Died,
}

/// A fragment, as far as it matters here.
#[derive(Debug)]
struct Fragment {
    header: FragmentHeader,
    state: State,
    has_events: bool,
    has_ring: bool,
}

/// Looks at the run in the directory, if there is one.
pub(crate) fn examine(paths: &RunPaths) -> Vec<Finding> {
    let mut findings: Vec<Finding> = run_file(&paths.directory.join(RUN_FILE))
        .into_iter()
        .collect();
    let names: Vec<String> = fs::read_dir(&paths.fragments)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let stems = by_stem(&names);
    let fragments: Vec<Fragment> = stems
        .iter()
        .filter_map(|(stem, segments)| newest(&paths.fragments, stem, segments))
        .collect();
    if !fragments.is_empty() {
        findings.extend(of_fragments(&fragments));
    }
    findings.extend(lone_rings(&names, &stems));
    findings.extend(said(&paths.directory));
    findings.extend(removed_runs(&paths.directory.join(REMOVED_FILE)));
    findings
}

/// What the processes of the newest run say they lost and do not see, if it is soon read.
fn said(directory: &Path) -> Vec<Finding> {
    let (found, unreadable) = found(directory).unwrap_or_default();
    let unseen = found.iter().flat_map(|one| {
        let (pid, one) = (one.pid, &one.contents);
        let words = one.reach.iter().flat_map(Reach::words);
        words.map(move |words| {
            Check("reach").warn(printable(&format!("process {pid}: {words}")), REACH_HINT)
        })
    });
    let unreadable = some_of(
        Check("unreadable"),
        &unreadable,
        "left out of the checks for crashes, losses and reach",
        "may this user read their fragments, and are they whole? trace-merge says what is wrong",
    );
    let known = crash(&found).chain(losses(&found)).chain(unseen);
    known.chain(unreadable).collect()
}

/// A process of the newest run, and what it recorded.
struct Found {
    pid: u32,
    name: String,
    is_alive: bool,
    contents: Contents,
}

/// Reads the fragments of each process, and lists the processes whose fragments cannot be read. Returns `None` if reading would take too long.
fn found(directory: &Path) -> Option<(Vec<Found>, Vec<String>)> {
    let run = trace_merge::survey::processes(directory).ok()?;
    let files = run.iter().flat_map(|process| &process.fragments);
    let bytes: u64 = files
        .filter_map(|path| Some(path.metadata().ok()?.len()))
        .sum();
    if bytes > MOST_READ_BYTES {
        return None;
    }
    let read = |process: &RunProcess| {
        let is_alive = process.is_alive(); // before its fragment is read: then nothing that it wrote is missing
        let contents = process.contents(&mut Known::default()).ok()?;
        let name = contents.name.clone();
        let name = name.unwrap_or_else(|| process.default_name().into_owned());
        Some(Found {
            pid: process.header.pid,
            name,
            is_alive,
            contents,
        })
    };
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for process in &run {
        match read(process) {
            Some(one) => found.push(one),
            None => unreadable.push(named(process.header.pid, &process.default_name())),
        }
    }
    Some((found, unreadable))
}

/// Says which processes were killed, with the one that died first at the front, and which ended by themselves in open spans.
fn crash(found: &[Found]) -> impl Iterator<Item = Finding> {
    let dead = |one: &Found| {
        Some(DeadProcess {
            name: one.name.clone(),
            pid: i64::from(one.pid),
            death: death(&one.contents, one.is_alive)?,
        })
    };
    let deaths: Deaths = found.iter().filter_map(dead).collect();
    let warn = |words, hint: &str| Check("crash").warn(words, hint);
    let of_killed =
        "sa-profile report says in which step the first one died, and with which requests";
    let killed = deaths.killed_words().map(|words| warn(words, of_killed));
    let of_exited = "their logs say why they ended: sa-profile report shows when";
    let exited = deaths.exited_words().map(|words| warn(words, of_exited));
    killed.into_iter().chain(exited)
}

fn losses(found: &[Found]) -> Option<Finding> {
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in found.iter().flat_map(|one| &one.contents.lost) {
        let of_cause = lost.entry(cause).or_default();
        *of_cause = of_cause.saturating_add(*count);
    }
    for cause in Cause::ALL
        .into_iter()
        .filter(|cause| cause.changes_events())
    {
        lost.remove(cause.name()); // these events were recorded
    }
    let refused = lost.remove(Cause::ChildrenRefused.name());
    let refused = refused.map(|count| format!("{} could not record", processes(count)));
    let counts = lost.iter().filter(|(_, events)| **events > 0);
    let counts = counts.map(|(cause, events)| format!("{} by {cause}", plural(*events, "event")));
    let found: Vec<String> = counts.chain(refused).collect();
    let hint = "trace-merge says whose they are and when";
    (!found.is_empty()).then(|| Check("losses").warn(found.join(", "), hint))
}

/// The earlier runs that were removed to make room.
fn removed_runs(path: &Path) -> Option<Finding> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    let removed: RemovedRuns = serde_json::from_str(&text).ok()?;
    let events = removed.runs.iter().map(|run| run.events);
    let events = events.fold(0, u64::saturating_add);
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

/// The fragments among the names, each with the numbers of its segments.
fn by_stem(names: &[String]) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut stems: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (stem, segment) in names.iter().filter_map(|name| stem_and_segment(name)) {
        stems.entry(stem).or_default().insert(segment);
    }
    stems
}

/// Reads the newest segment that has a header: it says how its process is.
fn newest(folder: &Path, stem: &str, segments: &BTreeSet<u32>) -> Option<Fragment> {
    let has_ring = folder.join(ring_name(stem)).exists();
    let mut newest = segments.iter().rev();
    newest.find_map(|segment| read(&folder.join(segment_name(stem, *segment)), has_ring))
}

fn run_file(path: &Path) -> Option<Finding> {
    let file = File::open(path).ok()?;
    let mut text = String::new();
    (&file).take(64 << 10).read_to_string(&mut text).ok()?;
    let Ok(run) = serde_json::from_str::<RunFile>(&text) else {
        return Some(RUN.warn(
            format!("{} is none", path.display()),
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

fn read(path: &Path, has_ring: bool) -> Option<Fragment> {
    let mut reader = BufReader::new(File::open(path).ok()?);
    let mut line = Vec::new();
    reader
        .by_ref()
        .take(16 << 10)
        .read_until(b'\n', &mut line)
        .ok()?;
    let header = FragmentHeader::parse(&line)?;
    let has_events = header.segment > 0 || has_events(&mut reader).ok()?;
    let mut file = reader.into_inner();
    let has_end = has_end(&mut file).ok()?;
    // A forked child keeps the lock of its dead parent. Without locks, or with processes of another host, assume that the process lives.
    let is_locked = has_exclusive_lock(&file).unwrap_or(true);
    let is_live = is_locked && is_alive_here(&header).unwrap_or(true);
    Some(Fragment {
        header,
        state: match (is_live, has_end) {
            (true, _) => State::Live,
            (false, true) => State::Ended,
            (false, false) => State::Died,
        },
        has_events,
        has_ring,
    })
}

/// Whether any line is not metadata.
fn has_events(reader: &mut impl BufRead) -> std::io::Result<bool> {
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

fn has_end(file: &mut File) -> std::io::Result<bool> {
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    Ok(tail.contains(&format!("\"name\":\"{}\"", End::NAME)))
}

fn of_fragments(fragments: &[Fragment]) -> Vec<Finding> {
    let of = |is_of: &dyn Fn(&Fragment) -> bool| pids(fragments.iter().filter(|one| is_of(one)));
    let state = |state| of(&|fragment| fragment.state == state);
    let (live, ended, died) = (state(State::Live), state(State::Ended), state(State::Died));
    let counts = format!(
        "{}: {} live, {} ended, {} died",
        processes(of(&|_| true).len() as u64),
        live.len(),
        ended.len(),
        died.len()
    );
    // Of a dead one the ring may hold all that it recorded.
    let silent = of(&|one| !one.has_events && (one.state != State::Died || !one.has_ring));
    let heap = of(&|one| one.header.ring == RingKind::Heap);
    let found = [
        Some(Check("processes").ok(counts)),
        some_of(
            Check("silent"),
            &silent,
            "wrote nothing but a header",
            "they started to record and had no event: is the level right, did they get work?",
        ),
        some_of(
            Check("died"),
            &died,
            match died.len() {
                1 => "ended without closing its recording",
                _ => "ended without closing their recordings",
            },
            "killed or crashed, or ended by _exit: trace-merge tells which, and shows the spans they died in; what they recorded is kept",
        ),
        left_rings(fragments),
        some_of(
            RINGS,
            &heap,
            "without a ring file",
            "a kill loses what they had not yet written: see file system above",
        ),
    ];
    found.into_iter().flatten().collect()
}

/// A warning that names the processes it is about; none without any.
fn some_of(check: Check, pids: &[String], what: &str, hint: &'static str) -> Option<Finding> {
    let found = || format!("{} {what}: {}", processes(pids.len() as u64), listed(pids));
    (!pids.is_empty()).then(|| check.warn(found(), hint))
}

fn left_rings(fragments: &[Fragment]) -> Option<Finding> {
    let is_left = |one: &&Fragment| one.has_ring && one.state != State::Live;
    let left = fragments.iter().filter(is_left).count() as u64;
    let found = format!("{} of dead processes left", plural(left, "ring"));
    let hint = "trace-merge takes what they hold and removes them";
    (left > 0).then(|| RINGS.warn(found, hint))
}

/// The processes of fragments, each once, as `pid (name)`.
fn pids<'a>(fragments: impl Iterator<Item = &'a Fragment>) -> Vec<String> {
    let processes: BTreeSet<_> = fragments
        .map(|fragment| {
            (
                fragment.header.pid,
                fragment.header.start_time,
                fragment.header.default_name(),
            )
        })
        .collect();
    processes
        .into_iter()
        .map(|(pid, _, program)| named(pid, &program))
        .collect()
}

/// Returns the name of a process for a list.
fn named(pid: u32, program: &str) -> String {
    printable(&format!("{pid} ({program})"))
}

fn listed(pids: &[String]) -> String {
    match pids.len().checked_sub(NAMED) {
        None | Some(0) => pids.join(", "),
        Some(more) => format!("{} and {more} more", pids[..NAMED].join(", ")),
    }
}

/// Rings beside which no fragment lies.
fn lone_rings(names: &[String], stems: &BTreeMap<&str, BTreeSet<u32>>) -> Option<Finding> {
    let rings = names.iter().filter(|name| is_ring_name(name));
    let of = rings.filter_map(|name| name.strip_suffix(RING_SUFFIX));
    let lone = of.filter(|stem| !stems.contains_key(stem)).count() as u64;
    let found = format!("{} without a fragment", plural(lone, "ring"));
    (lone > 0).then(|| RINGS.warn(found, "their fragments were removed: remove them too"))
}
