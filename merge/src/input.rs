//! Paths → the fragments to merge, by run.

use crate::fragment::{read_front, read_header};
use crate::{LeftOut, Runs};
use sa_recorder::format::{
    ANCHOR_RECORD, Anchor, FRAGMENTS_DIR, Metadata, NEXT_RUN_FILE, PREVIOUS_DIR, RUN_FILE, RunFile,
    is_fragment_name,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A fragment to merge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    /// Whether it was named itself; a link among listed files is not followed.
    pub(crate) named: bool,
    /// Whether it was found in a directory: then all segments of its fragment are wanted.
    pub(crate) in_directory: bool,
}

impl Input {
    pub(crate) fn in_directory(path: PathBuf) -> Input {
        Input {
            path,
            named: false,
            in_directory: true,
        }
    }
}

/// What the paths led to.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) files: Vec<Input>,
    pub(crate) unreadable: Vec<(PathBuf, String)>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Directory that the trace goes to by default.
    pub(crate) run_directory: Option<PathBuf>,
}

/// A fragment found in a directory.
struct Candidate {
    path: PathBuf,
    run: Option<String>,
    /// Wall time of its first anchor, else of its last change, in ns.
    time_ns: u64,
    live: bool,
}

/// Finds the fragments of the selected runs, sorted by path.
pub(crate) fn find(paths: &[PathBuf], runs: &Runs) -> Inputs {
    let mut inputs = Inputs::default();
    for path in paths {
        match matches(path) {
            Some(found) => found
                .iter()
                .for_each(|path| one_path(path, false, runs, &mut inputs)),
            None => one_path(path, true, runs, &mut inputs),
        }
    }
    inputs.files.sort();
    inputs
        .files
        .dedup_by(|next, previous| next.path == previous.path);
    inputs
}

/// The matches of a pattern that no shell expanded; `None` for a path that stands for itself. What a pattern finds through a link is not
/// taken: only what is named in full may be one.
fn matches(path: &Path) -> Option<Vec<PathBuf>> {
    let is_pattern = |path: &Path| path.to_string_lossy().contains(['*', '?', '[']);
    if path.exists() || !is_pattern(path) {
        return None;
    }
    let fixed = path.ancestors().find(|path| !is_pattern(path));
    let is_linked = |found: &Path| {
        let found = found.ancestors().take_while(|path| Some(*path) != fixed);
        found.into_iter().any(Path::is_symlink)
    };
    let found = glob::glob(&path.to_string_lossy());
    let wanted: Vec<_> = found
        .into_iter()
        .flatten()
        .flatten()
        .filter(|found| found.is_dir() || is_fragment(found) || names_traces(path))
        .filter(|found| !is_linked(found))
        .collect();
    (!wanted.is_empty()).then_some(wanted)
}

/// Whether a pattern asks for files that are called like traces of other profilers, not just for whatever lies there.
fn names_traces(pattern: &Path) -> bool {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    [".json", ".json.gz", ".log"]
        .into_iter()
        .any(|ending| name.ends_with(ending))
}

pub(crate) fn is_fragment(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(is_fragment_name)
}

fn one_path(path: &Path, named: bool, runs: &Runs, inputs: &mut Inputs) {
    if path.is_dir() {
        let directory = run_directory(path);
        if let Err(error) = directory_files(path, &directory, runs, inputs) {
            inputs.unreadable.push((path.to_owned(), error.to_string()));
        }
        inputs.run_directory.get_or_insert(directory);
        return;
    }
    // Beside another profiler's trace nothing is written that was not asked for: its neighbour may be called like ours.
    if let Some(directory) = path.parent().filter(|_| is_of_a_run(path, named)) {
        inputs
            .run_directory
            .get_or_insert_with(|| run_directory(directory));
    }
    let wanted = match runs {
        Runs::Named(run) => read_front(path, named)
            .ok()
            .and_then(|front| read_header(&front))
            .is_none_or(|header| header.run == *run),
        _ => true,
    };
    if wanted {
        inputs.files.push(Input {
            path: path.to_owned(),
            named,
            in_directory: false,
        });
    }
}

/// Whether a file is a fragment, by its name or by what it begins with.
fn is_of_a_run(path: &Path, named: bool) -> bool {
    let begins_like_one =
        || read_front(path, named).is_ok_and(|front| read_header(&front).is_some());
    path.exists() && (is_fragment(path) || begins_like_one())
}

/// The directory itself, or the one above if it is a run's `fragments`.
fn run_directory(path: &Path) -> PathBuf {
    let is_fragments = path.file_name().is_some_and(|name| name == FRAGMENTS_DIR);
    match path.parent() {
        Some(parent) if is_fragments && parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) if is_fragments => parent.to_owned(),
        _ if path.as_os_str().is_empty() => PathBuf::from("."),
        _ => path.to_owned(),
    }
}

fn directory_files(
    path: &Path,
    directory: &Path,
    runs: &Runs,
    inputs: &mut Inputs,
) -> io::Result<()> {
    let mut candidates = Vec::new();
    list(path, true, &mut candidates)?;
    let fragments = path.join(FRAGMENTS_DIR);
    if path == directory && fragments.is_symlink() {
        let why = "a link, which is followed only if it is named".to_owned();
        inputs.unreadable.push((fragments, why));
    } else if path == directory {
        list_if_there(&fragments, true, None, &mut candidates)?;
    }
    for run in subdirectories(&directory.join(PREVIOUS_DIR)) {
        let name = run
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        list_if_there(&run, false, name.clone(), &mut candidates)?;
        list_if_there(&run.join(FRAGMENTS_DIR), false, name, &mut candidates)?;
    }
    select(directory, candidates, runs, inputs);
    Ok(())
}

fn list_if_there(
    path: &Path,
    live: bool,
    run: Option<String>,
    into: &mut Vec<Candidate>,
) -> io::Result<()> {
    let before = into.len();
    if path.is_symlink() {
        return Ok(());
    }
    match list(path, live, into) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for candidate in &mut into[before..] {
        candidate.run = candidate.run.take().or_else(|| run.clone());
    }
    Ok(())
}

fn list(path: &Path, live: bool, into: &mut Vec<Candidate>) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if is_fragment(&entry.path()) && !entry.file_type()?.is_dir() {
            into.push(candidate(entry.path(), live));
        }
    }
    Ok(())
}

/// The directories in a directory; through links nothing is found.
fn subdirectories(path: &Path) -> Vec<PathBuf> {
    if path.is_symlink() {
        return Vec::new();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut directories: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    directories.sort();
    directories
}

fn candidate(path: PathBuf, live: bool) -> Candidate {
    let front = read_front(&path, false).unwrap_or_default();
    let run = read_header(&front).map(|header| header.run);
    let time_ns = first_anchor(&front).or_else(|| changed(&path)).unwrap_or(0);
    Candidate {
        path,
        run,
        time_ns,
        live,
    }
}

fn first_anchor(front: &[u8]) -> Option<u64> {
    let lines = front.split(|byte| *byte == b'\n').take(16);
    let mut anchors =
        lines.filter_map(|line| serde_json::from_slice::<Metadata<Anchor>>(line).ok());
    anchors
        .find(|record| record.name == ANCHOR_RECORD)
        .map(|record| record.args.realtime_ns)
}

fn changed(path: &Path) -> Option<u64> {
    let changed = fs::symlink_metadata(path).ok()?.modified().ok()?;
    u64::try_from(changed.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The live run's id: what `<dir>/run` says if it has fragments, else the run with the newest fragment.
fn newest_run(directory: &Path, candidates: &[Candidate]) -> Option<String> {
    let live: Vec<_> = candidates
        .iter()
        .filter(|candidate| candidate.live)
        .collect();
    let stated = read_front(&directory.join(RUN_FILE), false)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<RunFile>(&bytes).ok());
    if let Some(stated) = stated
        && live
            .iter()
            .any(|candidate| candidate.run.as_ref() == Some(&stated.run))
    {
        return Some(stated.run);
    }
    live.iter()
        .filter(|candidate| candidate.run.is_some())
        .max_by_key(|c| (c.time_ns, &c.run))
        .and_then(|c| c.run.clone())
}

/// The run that the main process of the live run is about to begin, if another process was faster: until then both are one.
fn next_run(directory: &Path, newest: Option<&str>) -> Option<String> {
    let read = |name: &str| {
        let text = read_front(&directory.join(name), false).ok()?;
        serde_json::from_slice::<RunFile>(&text).ok()
    };
    let (now, next) = (read(RUN_FILE)?, read(NEXT_RUN_FILE)?);
    let of_main = |run: RunFile| RunFile {
        run: String::new(),
        ..run
    };
    let id = next.run.clone();
    (newest == Some(&now.run) && of_main(now) == of_main(next)).then_some(id)
}

fn select(directory: &Path, candidates: Vec<Candidate>, runs: &Runs, inputs: &mut Inputs) {
    let newest = newest_run(directory, &candidates);
    let next = next_run(directory, newest.as_deref());
    let is_newest = |c: &Candidate| c.run == newest || c.live && next.is_some() && c.run == next;
    let others = candidates
        .iter()
        .filter(|c| c.run.is_some() && !is_newest(c));
    let previous = others
        .max_by_key(|c| (c.time_ns, &c.run))
        .and_then(|c| c.run.clone());
    let wanted = |candidate: &Candidate| match runs {
        Runs::All => true,
        Runs::InPlace => candidate.live,
        Runs::Named(run) => candidate.run.as_ref().or(newest.as_ref()) == Some(run),
        Runs::Previous => previous.is_some() && candidate.run == previous,
        Runs::Newest => candidate.live && (candidate.run.is_none() || is_newest(candidate)),
    };
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let mut files = BTreeSet::new();
    for candidate in &candidates {
        if wanted(candidate) {
            files.insert(Input::in_directory(candidate.path.clone()));
        } else {
            *left_out
                .entry(candidate.run.clone().unwrap_or_default())
                .or_default() += 1;
        }
    }
    inputs.files.extend(files);
    inputs.left_out.extend(
        left_out
            .into_iter()
            .map(|(run, fragments)| LeftOut { run, fragments }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::header;
    use sa_recorder::format::FragmentHeader;

    fn write(path: &Path, run: Option<&str>, realtime_ns: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut text = String::new();
        if let Some(run) = run {
            let args = FragmentHeader {
                run: run.into(),
                ..header(1)
            };
            text +=
                &(serde_json::to_string(&Metadata::new(1, "sa_fragment", args)).unwrap() + "\n");
            let anchor = Anchor {
                monotonic_ns: 1,
                realtime_ns,
                uncertainty_ns: 1,
            };
            text +=
                &(serde_json::to_string(&Metadata::new(1, "sa_anchor", anchor)).unwrap() + "\n");
        }
        fs::write(path, text).unwrap();
    }

    fn names(dir: &Path, runs: &Runs) -> Vec<String> {
        let inputs = find(&[dir.to_owned()], runs);
        inputs
            .files
            .iter()
            .map(|file| {
                file.path
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    #[test]
    fn runs_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let fragments = dir.path().join("fragments");
        write(&fragments.join("trace.1.jsonl"), Some("b"), 200);
        write(&fragments.join("trace.2.jsonl"), Some("a"), 300);
        write(&fragments.join("trace.3.jsonl"), None, 0);
        write(&dir.path().join("previous/z/trace.4.jsonl"), Some("z"), 100);
        fs::write(dir.path().join("trace.json"), "{}").unwrap();
        assert_eq!(
            names(dir.path(), &Runs::Newest),
            ["trace.2.jsonl", "trace.3.jsonl"]
        );
        assert_eq!(
            names(&fragments, &Runs::Newest),
            ["trace.2.jsonl", "trace.3.jsonl"]
        );
        assert_eq!(names(dir.path(), &Runs::Previous), ["trace.1.jsonl"]);
        assert_eq!(
            names(dir.path(), &Runs::Named("z".into())),
            ["trace.4.jsonl"]
        );
        assert_eq!(names(dir.path(), &Runs::All).len(), 4);
        let left_out = find(&[dir.path().to_owned()], &Runs::Newest).left_out;
        assert_eq!(
            left_out
                .iter()
                .map(|left| left.run.as_str())
                .collect::<Vec<_>>(),
            ["b", "z"]
        );
    }

    #[test]
    fn a_run_that_is_about_to_begin_is_one_with_the_live_one_of_the_same_main_process() {
        let dir = tempfile::tempdir().unwrap();
        let fragments = dir.path().join("fragments");
        write(&fragments.join("trace.1.jsonl"), Some("now"), 100);
        write(&fragments.join("trace.2.jsonl"), Some("next"), 200);
        write(
            &dir.path().join("previous/old/trace.3.jsonl"),
            Some("old"),
            50,
        );
        let store = |name: &str, run: &str, start_time| {
            let run = RunFile {
                run: run.to_owned(),
                main_pid: 1,
                start_time,
                host: "h".to_owned(),
                boot_id: "b".to_owned(),
                pid_ns: 1,
            };
            fs::write(dir.path().join(name), serde_json::to_vec(&run).unwrap()).unwrap();
        };
        store(RUN_FILE, "now", 7);
        for (start_time, newest, previous) in [
            (7, &["trace.1.jsonl", "trace.2.jsonl"][..], "trace.3.jsonl"),
            (8, &["trace.1.jsonl"][..], "trace.2.jsonl"),
        ] {
            store(NEXT_RUN_FILE, "next", start_time);
            assert_eq!(names(dir.path(), &Runs::Newest), newest);
            assert_eq!(names(dir.path(), &Runs::Previous), [previous]);
        }
        // The main process has begun it.
        store(RUN_FILE, "next", 7);
        assert_eq!(names(dir.path(), &Runs::Newest), ["trace.2.jsonl"]);
    }

    #[test]
    fn patterns_take_fragments_only() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("trace.1.jsonl"), None, 0);
        write(&dir.path().join("trace.1.ring"), None, 0);
        assert_eq!(
            names(&dir.path().join("*"), &Runs::Newest),
            ["trace.1.jsonl"]
        );
        write(&dir.path().join("kineto.json"), None, 0);
        assert_eq!(
            names(&dir.path().join("*.json"), &Runs::Newest),
            ["kineto.json"]
        );
        assert_eq!(
            names(&dir.path().join("*"), &Runs::Newest),
            ["trace.1.jsonl"]
        );
    }
}
