//! Resolves paths to the fragments that a merge reads, grouped by run.

use crate::base::folder::{FileLocation, Folder};
use crate::fragment::file::{first_anchor, header_at, read_header};
use sa_format::{
    FRAGMENTS_DIR, NEXT_RUN_FILE, PREVIOUS_DIR, REMOVED_FILE, RUN_FILE, RemovedRuns, RunFile,
    is_fragment_name,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Selection of the runs of a directory to merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// The newest run.
    #[default]
    Newest,
    /// The run before the newest one.
    Previous,
    /// The run with this id.
    Named(String),
    /// All runs.
    All,
    /// Fragments of any run that are still in the folder `fragments`. Fragments that were moved to `previous/` are left out.
    InPlace,
}

impl Runs {
    /// Returns the runs that `--run`, `--previous` or `--all-runs` select.
    pub fn from_options(run: Option<String>, is_previous: bool, are_all: bool) -> Runs {
        match run {
            Some(run) => Runs::Named(run),
            None if is_previous => Runs::Previous,
            None if are_all => Runs::All,
            None => Runs::Newest,
        }
    }
}

/// A run that was found but not selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Run id; empty if the fragments do not contain one.
    pub run: String,
    /// Number of its fragments.
    pub fragments: usize,
}

/// A fragment to merge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// Location of the file.
    pub place: FileLocation,
    /// True if the user named this file. Only then is a link followed.
    pub named: bool,
    /// True if the file was found in a directory. Then all segments of its fragment are wanted.
    pub in_directory: bool,
}

impl Input {
    /// Creates the input for a file that was found in a directory.
    pub fn in_directory(place: FileLocation) -> Input {
        Input {
            place,
            named: false,
            in_directory: true,
        }
    }
}

/// Everything that was found under the given paths.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Files to merge, sorted by path.
    pub files: Vec<Input>,
    /// Paths that could not be read, each with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Runs that were not selected.
    pub left_out: Vec<LeftOut>,
    /// Runs that have been removed from the directory.
    pub removed: RemovedRuns,
    /// Directory to which the trace is written by default.
    pub run_directory: Option<Folder>,
}

/// A fragment found in a directory.
struct RunCandidate {
    /// Location; `None` if its run cannot be selected. Otherwise a folder of each of many earlier runs would be held open.
    place: Option<FileLocation>,
    run: Option<String>,
    /// Wall time in ns of its first anchor, or of its last change if it has none.
    time_ns: u64,
    live: bool,
}

/// Finds the fragments of the selected runs, sorted by path.
pub fn find(paths: &[PathBuf], runs: &Runs) -> Inputs {
    let mut search = InputSearch {
        runs,
        inputs: Inputs::default(),
        parents: BTreeMap::new(),
    };
    for path in paths {
        match expand_pattern(path) {
            Some((fixed, found)) => found.iter().for_each(|path| search.add_match(fixed, path)),
            None => search.add_named(path),
        }
    }
    let mut inputs = search.inputs;
    inputs.files.sort();
    inputs
        .files
        .dedup_by(|next, previous| next.place == previous.place);
    inputs
}

/// Expands a pattern that no shell has expanded. Returns its matches and the longest parent folder without wildcards; `None` if the path is not a
/// pattern.
fn expand_pattern(path: &Path) -> Option<(&Path, Vec<PathBuf>)> {
    let is_pattern = |path: &Path| path.to_string_lossy().contains(['*', '?', '[']);
    if path.exists() || !is_pattern(path) {
        return None;
    }
    let fixed = path.ancestors().find(|path| !is_pattern(path))?;
    let fixed = fixed.strip_prefix(".").unwrap_or(fixed); // glob returns matches without "./", too
    let found = glob::glob(&path.to_string_lossy());
    let wanted: Vec<_> = found
        .into_iter()
        .flatten()
        .flatten()
        .filter(|found| found.is_dir() || is_fragment(found) || names_traces(path))
        .collect();
    (!wanted.is_empty()).then_some((fixed, wanted))
}

/// Returns true if the file name of a pattern ends like a trace of another profiler. Such files are only matched if the pattern asks for them.
fn names_traces(pattern: &Path) -> bool {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    [".json", ".json.gz", ".log"]
        .into_iter()
        .any(|ending| name.ends_with(ending))
}

/// Returns true if a file is named like a fragment.
pub fn is_fragment(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(is_fragment_name)
}

fn is_fragments(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FRAGMENTS_DIR)
}

/// Returns the parent folder of a path; empty for the current directory.
fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// State of the search for inputs.
struct InputSearch<'a> {
    runs: &'a Runs,
    inputs: Inputs,
    /// Folders that were opened already, by path.
    parents: BTreeMap<PathBuf, Folder>,
}

impl InputSearch<'_> {
    /// Adds a path that the user named. Links are followed in every part of it.
    fn add_named(&mut self, path: &Path) {
        match Folder::open(path) {
            Ok(folder) => {
                let above = is_fragments(path).then(|| self.named_folder(parent_of(path)));
                self.add_directory(folder, above.and_then(Result::ok));
            }
            Err(error) if path.is_dir() => self.add_unreadable(path, &error),
            Err(_) => match self.named_folder(parent_of(path)) {
                Ok(folder) => {
                    self.add_file(folder.place(path.file_name().unwrap_or_default()), true);
                }
                Err(error) => self.add_unreadable(path, &error),
            },
        }
    }

    fn named_folder(&mut self, path: &Path) -> io::Result<Folder> {
        self.folder(path, || Folder::open(path))
    }

    fn folder(
        &mut self,
        path: &Path,
        open: impl FnOnce() -> io::Result<Folder>,
    ) -> io::Result<Folder> {
        if let Some(folder) = self.parents.get(path) {
            return Ok(folder.clone());
        }
        let folder = open()?;
        self.parents.insert(path.to_owned(), folder.clone());
        Ok(folder)
    }

    /// Adds a match of a pattern. Links are only followed in `fixed`, the part without wildcards.
    fn add_match(&mut self, fixed: &Path, path: &Path) {
        let parent = parent_of(path);
        let above = match self.folder(parent, || Folder::open_below(fixed, parent)) {
            Ok(above) => above,
            Err(error) if is_absent(&error) => return,
            Err(error) => return self.add_unreadable(path, &error),
        };
        let name = path.file_name().unwrap_or_default();
        let place = above.place(name);
        match above.folder(name) {
            Ok(folder) => {
                let above = is_fragments(path).then_some(above);
                self.add_directory(folder, above);
            }
            Err(_) if place.is_link() => {}
            Err(error) if is_absent(&error) => self.add_file(place, false),
            Err(error) => self.add_unreadable(path, &error),
        }
    }

    fn add_unreadable(&mut self, path: &Path, error: &io::Error) {
        let why = (path.to_owned(), error.to_string());
        self.inputs.unreadable.push(why);
    }

    /// Adds a directory. `above` is its run directory if it is a `fragments` folder.
    fn add_directory(&mut self, folder: Folder, above: Option<Folder>) {
        let run = above.as_ref().unwrap_or(&folder);
        if let Err(error) = self.directory_files(&folder, run) {
            self.add_unreadable(folder.path(), &error);
        }
        self.inputs
            .run_directory
            .get_or_insert(above.unwrap_or(folder));
    }

    fn add_file(&mut self, place: FileLocation, named: bool) {
        // The default output must not land next to another profiler's trace: a file there could have the name of our own trace.
        if self.inputs.run_directory.is_none() && belongs_to_run(&place, named) {
            let folder = place.folder();
            let above = is_fragments(folder.path())
                .then(|| self.named_folder(parent_of(folder.path())).ok());
            self.inputs.run_directory = above.flatten().or_else(|| Some(folder.clone()));
        }
        let wanted = match self.runs {
            Runs::Named(run) => header_at(&place, named).is_none_or(|header| header.run == *run),
            _ => true,
        };
        if wanted {
            self.inputs.files.push(Input {
                place,
                named,
                in_directory: false,
            });
        }
    }

    fn directory_files(&mut self, folder: &Folder, run: &Folder) -> io::Result<()> {
        let mut candidates = Vec::new();
        list_fragments(folder, true, &mut candidates)?;
        if folder.path() == run.path() {
            match run.folder(FRAGMENTS_DIR) {
                Ok(fragments) => list_fragments(&fragments, true, &mut candidates)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let fragments = run.place(FRAGMENTS_DIR);
                    let why = match fragments.is_link() {
                        true => "a link, which is followed only if it is named".to_owned(),
                        false => error.to_string(),
                    };
                    let path = fragments.path().to_owned();
                    self.inputs.unreadable.push((path, why));
                }
            }
        }
        self.list_previous(run, &mut candidates);
        self.select(run, &candidates);
        let removed: RemovedRuns = read_json(run, REMOVED_FILE).unwrap_or_default();
        let all = &mut self.inputs.removed;
        all.runs.extend(removed.runs);
        all.older_runs = all.older_runs.saturating_add(removed.older_runs);
        all.older_events = all.older_events.saturating_add(removed.older_events);
        Ok(())
    }

    /// Finds the fragments of earlier runs. If one run cannot be read, the others are still found.
    fn list_previous(&mut self, run: &Folder, into: &mut Vec<RunCandidate>) {
        let entries = run.folder(PREVIOUS_DIR).and_then(|previous| {
            let entries = previous.entries()?;
            Ok((previous, entries))
        });
        let (previous, mut entries) = match entries {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return,
            Err(error) => return self.add_unreadable(&run.path().join(PREVIOUS_DIR), &error),
        };
        entries.retain(|entry| entry.is_folder);
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let before = into.len();
            match list_earlier(&previous, &entry.name, into) {
                Err(error) if !is_absent(&error) => {
                    self.add_unreadable(&previous.path().join(&entry.name), &error);
                }
                _ => {}
            }
            for candidate in &mut into[before..] {
                let name = || entry.name.to_string_lossy().into_owned();
                candidate.run.get_or_insert_with(name);
                if matches!(self.runs, Runs::Newest | Runs::InPlace) {
                    candidate.place = None;
                }
            }
        }
    }

    fn select(&mut self, directory: &Folder, candidates: &[RunCandidate]) {
        let newest = newest_run(directory, candidates);
        let next = next_run(directory, newest.as_deref());
        let is_newest =
            |c: &RunCandidate| c.run == newest || c.live && next.is_some() && c.run == next;
        let previous = latest(candidates.iter().filter(|c| !is_newest(c)));
        let wanted = |candidate: &RunCandidate| match self.runs {
            Runs::All => true,
            Runs::InPlace => candidate.live,
            Runs::Named(run) => candidate.run.as_ref().or(newest.as_ref()) == Some(run),
            Runs::Previous => previous.is_some() && candidate.run == previous,
            Runs::Newest => candidate.live && (candidate.run.is_none() || is_newest(candidate)),
        };
        let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
        let mut files = BTreeSet::new();
        for candidate in candidates {
            if let Some(place) = candidate.place.as_ref().filter(|_| wanted(candidate)) {
                files.insert(Input::in_directory(place.clone()));
            } else {
                let run = candidate.run.clone().unwrap_or_default();
                *left_out.entry(run).or_default() += 1;
            }
        }
        self.inputs.files.extend(files);
        let left_out = left_out
            .into_iter()
            .map(|(run, fragments)| LeftOut { run, fragments });
        self.inputs.left_out.extend(left_out);
    }
}

/// Returns true if a file is a fragment by its name or by its first line.
fn belongs_to_run(place: &FileLocation, named: bool) -> bool {
    place.exists() && (is_fragment(place.path()) || header_at(place, named).is_some())
}

/// Returns true if the error means that there is no such folder, or that it is a link, which is not followed.
fn is_absent(error: &io::Error) -> bool {
    let kinds = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    kinds.contains(&error.kind()) || error.raw_os_error() == Some(libc::ELOOP)
}

/// Finds the fragments of one earlier run.
fn list_earlier(previous: &Folder, name: &OsStr, into: &mut Vec<RunCandidate>) -> io::Result<()> {
    let earlier = previous.folder(name)?;
    list_fragments(&earlier, false, into)?;
    match earlier.folder(FRAGMENTS_DIR) {
        Ok(fragments) => list_fragments(&fragments, false, into),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn list_fragments(folder: &Folder, live: bool, into: &mut Vec<RunCandidate>) -> io::Result<()> {
    for entry in folder.entries()? {
        if is_fragment(Path::new(&entry.name)) && !entry.is_folder {
            let place = folder.place(&entry.name);
            let front = place.read_front(false).unwrap_or_default();
            into.push(RunCandidate {
                run: read_header(&front).map(|header| header.run),
                time_ns: time_ns(&place, &front),
                place: Some(place),
                live,
            });
        }
    }
    Ok(())
}

/// Returns when a fragment was begun, as wall time in ns.
pub fn began_ns(place: &FileLocation) -> u64 {
    time_ns(place, &place.read_front(false).unwrap_or_default())
}

fn time_ns(place: &FileLocation, front: &[u8]) -> u64 {
    let anchored = first_anchor(front).map(|anchor| anchor.realtime_ns);
    anchored.or_else(|| modified_ns(place)).unwrap_or(0)
}

fn modified_ns(place: &FileLocation) -> Option<u64> {
    let status = place.status().ok()?;
    let seconds = u64::try_from(status.st_mtime).ok()?;
    let whole_ns = seconds.checked_mul(1_000_000_000)?;
    whole_ns.checked_add(status.st_mtime_nsec)
}

/// Returns the id of the live run: the one in `<dir>/run` if it has fragments, otherwise the run with the newest fragment.
fn newest_run(directory: &Folder, candidates: &[RunCandidate]) -> Option<String> {
    let live = || candidates.iter().filter(|candidate| candidate.live);
    let stated = read_json(directory, RUN_FILE).map(|stated: RunFile| stated.run);
    let has_fragments = |run: &String| live().any(|candidate| candidate.run.as_ref() == Some(run));
    stated.filter(has_fragments).or_else(|| latest(live()))
}

/// Returns the run of the newest of these fragments.
fn latest<'a>(candidates: impl Iterator<Item = &'a RunCandidate>) -> Option<String> {
    let of_runs = candidates.filter(|candidate| candidate.run.is_some());
    of_runs.max_by_key(|c| (c.time_ns, &c.run))?.run.clone()
}

/// Reads a JSON file that describes the runs of a directory.
fn read_json<T: DeserializeOwned>(directory: &Folder, name: &str) -> Option<T> {
    let text = directory.place(name).read_front(false).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the id in `next-run` if the main process of the live run is about to begin that run. Another process was faster to use it, and until the
/// main process follows, both ids mean one run.
fn next_run(directory: &Folder, newest: Option<&str>) -> Option<String> {
    let now: RunFile = read_json(directory, RUN_FILE)?;
    let next: RunFile = read_json(directory, NEXT_RUN_FILE)?;
    let same_process_run = RunFile {
        run: next.run.clone(),
        ..now.clone()
    };
    (newest == Some(&now.run) && same_process_run == next).then_some(next.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::{anchor, header};
    use sa_format::{FragmentHeader, Record};
    use std::fs;

    #[test]
    fn a_run_that_is_about_to_begin_is_one_with_the_live_one_of_the_same_main_process() {
        let dir = tempfile::tempdir().unwrap();
        for (path, run, realtime_ns) in [
            ("fragments/trace.1.jsonl", "now", 100),
            ("fragments/trace.2.jsonl", "next", 200),
            ("previous/old/trace.3.jsonl", "old", 50),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(parent_of(&path)).unwrap();
            let header = FragmentHeader {
                run: run.into(),
                ..header(1)
            };
            let lines = [header.line(1), anchor(1, realtime_ns).line(1)];
            fs::write(path, lines.concat()).unwrap();
        }
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
        let found = |runs: &Runs| {
            let files = find(&[dir.path().to_owned()], runs).files;
            let pids = files.iter().map(|file| segment_pid(&file.place));
            pids.collect::<String>()
        };
        store(RUN_FILE, "now", 7);
        for (start_time, newest, previous) in [(7, "12", "3"), (8, "1", "2")] {
            store(NEXT_RUN_FILE, "next", start_time);
            assert_eq!(
                (found(&Runs::Newest), found(&Runs::Previous)),
                (newest.into(), previous.into())
            );
        }
        // The main process has now begun the next run.
        store(RUN_FILE, "next", 7);
        assert_eq!(found(&Runs::Newest), "2");
    }

    /// Returns the pid in the name of a fragment.
    fn segment_pid(place: &FileLocation) -> String {
        let name = place.name().to_string_lossy();
        name.split('.').nth(1).unwrap().to_owned()
    }
}
