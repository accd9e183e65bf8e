//! Finds the run for a directory: a run in the directory itself, or one in the folders that `sa-profile run` created there.

use super::{RunProcess, processes};
use crate::base::folder::Folder;
use crate::error::Error;
use crate::fragment::file::header_at;
use crate::fragment::input::{self, Runs};
use sa_format::{FRAGMENTS_DIR, PREVIOUS_DIR, is_run_folder_name};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of runs that a notice names.
const NAMED: usize = 8;
/// Description of the run that `--previous` selects.
const BEFORE: &str = "the run before the newest";

/// The runs that were found for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRuns {
    /// Directories with the runs; never empty.
    pub paths: Vec<PathBuf>,
    /// Selection of the runs of these directories.
    pub runs: Runs,
    /// Notices for stderr about the runs that were chosen. Empty if the user named the run, or named a directory and its newest run is used.
    pub notices: Vec<String>,
}

impl FoundRuns {
    /// Selects runs of one directory.
    fn in_directory(directory: &Path, runs: &Runs, notice: Option<String>) -> FoundRuns {
        FoundRuns {
            paths: vec![directory.to_owned()],
            runs: runs.clone(),
            notices: notice.into_iter().collect(),
        }
    }

    /// Selects runs of a directory that the user did not name.
    fn chosen(candidate: &Candidate, runs: &Runs, which: &str) -> FoundRuns {
        let directory = &candidate.directory;
        let notice = format!("taking {}, {which}", directory.display());
        FoundRuns::in_directory(directory, runs, Some(notice))
    }
}

/// Finds the selected runs for the given paths. A directory stands for the run in it or for the newest one that `sa-profile run` created in it.
/// Fragments, traces and patterns stay as they are.
///
/// If the user named the paths (`are_named`), a run in a directory is preferred to runs in its folders, and earlier runs are searched for only in the
/// directory. Otherwise the newest run is preferred, and earlier runs are searched for in the directory and its folders.
///
/// # Errors
/// Returns [`Error::NothingUsable`] if a directory has no such run, and [`Error::Usage`] if the paths select different runs.
pub fn find_runs(paths: &[PathBuf], are_named: bool, runs: &Runs) -> Result<FoundRuns, Error> {
    let mut all = FoundRuns {
        paths: Vec::new(),
        runs: runs.clone(),
        notices: Vec::new(),
    };
    for (nth, path) in paths.iter().enumerate() {
        let search = RunSearch {
            directory: path,
            is_named: are_named,
        };
        let found = match path.is_dir() {
            true => search.find(runs)?,
            false => search.as_named(runs),
        };
        if nth > 0 && found.runs != all.runs {
            return Err(Error::Usage(format!(
                "{}: expected a single path: --previous selects the run in another way in this directory than in the others",
                path.display()
            )));
        }
        all.paths.extend(found.paths);
        all.notices.extend(found.notices);
        all.runs = found.runs;
    }
    Ok(all)
}

/// Finds the newest run with a process that is recording, in a directory or its folders. If the user named the directory (`is_named`), a run in it is
/// used even if it is not live.
///
/// # Errors
/// Returns [`Error::NothingUsable`] if no run is found.
pub fn find_live_run(directory: &Path, is_named: bool) -> Result<FoundRuns, Error> {
    let search = RunSearch {
        directory,
        is_named,
    };
    search.find_live()
}

/// A directory to search for runs.
#[derive(Clone, Copy, Debug)]
struct RunSearch<'a> {
    directory: &'a Path,
    is_named: bool,
}

/// A directory with a run.
struct Candidate {
    directory: PathBuf,
    /// Wall time at which its earliest process began to record, in ns.
    began_ns: u64,
    processes: Vec<RunProcess>,
}

impl Candidate {
    /// Reads the runs in the directory itself, not in its folders.
    fn read(directory: &Path, runs: &Runs) -> Option<Candidate> {
        let files = input::find(&[directory.to_owned()], runs).files;
        let began_ns = files.iter().map(|file| input::began_ns(&file.place)).min();
        Some(Candidate {
            directory: directory.to_owned(),
            began_ns: began_ns?,
            // Fragments of other recorders do not name a process.
            processes: processes(directory).unwrap_or_default(),
        })
    }

    /// Returns the notice for the user that this run was chosen. `which` says how it was chosen, such as "the newest live run".
    fn notice(&self, which: &str) -> String {
        let ids = Vec::from_iter(run_ids(&self.directory, &Runs::Previous));
        let (ids, directory) = (ids.join(", "), self.directory.display());
        format!("taking run {ids} in {directory}, {which}")
    }

    fn is_live(&self) -> bool {
        self.processes.iter().any(RunProcess::is_recording)
    }
}

impl RunSearch<'_> {
    fn find(self, runs: &Runs) -> Result<FoundRuns, Error> {
        let Some(all) = self.candidates() else {
            return Ok(self.in_directory(runs));
        };
        let Some(newest) = all.first() else {
            return Err(self.not_found("expected a run"));
        };
        match runs {
            Runs::Newest | Runs::InPlace => Ok(FoundRuns::chosen(newest, runs, "the newest run")),
            Runs::Previous => self.previous(newest, all.get(1)),
            Runs::All => {
                let folders = all
                    .into_iter()
                    .map(|candidate| candidate.directory)
                    .filter(|folder| folder != self.directory);
                let own = self.directory.to_owned();
                let paths: Vec<PathBuf> = std::iter::once(own).chain(folders).collect();
                Ok(FoundRuns {
                    notices: vec![self.all_runs_notice(&paths)],
                    paths,
                    runs: Runs::All,
                })
            }
            Runs::Named(_) => match all.iter().find(|one| has_fragments(&one.directory, runs)) {
                Some(with_run) => Ok(FoundRuns::chosen(with_run, runs, "which has this run")),
                None => Ok(self.as_named(runs)),
            },
        }
    }

    /// Selects runs in the directory itself.
    fn in_directory(self, runs: &Runs) -> FoundRuns {
        let own = std::slice::from_ref(&self.directory);
        let notice = match runs {
            Runs::Previous => {
                let previous = Candidate::read(self.directory, runs);
                previous.map(|previous| previous.notice(BEFORE))
            }
            Runs::All => Some(self.all_runs_notice(own)),
            Runs::Newest | Runs::InPlace | Runs::Named(_) => None,
        };
        FoundRuns::in_directory(self.directory, runs, notice)
    }

    /// Returns the run before the newest: the one before it in the same directory, or the newest of another directory, whichever began later.
    fn previous(self, newest: &Candidate, other: Option<&Candidate>) -> Result<FoundRuns, Error> {
        let same = Candidate::read(&newest.directory, &Runs::Previous);
        let began_ns = other.map_or(0, |other| other.began_ns);
        match (same.filter(|same| same.began_ns > began_ns), other) {
            (Some(same), _) => {
                let notice = Some(same.notice(BEFORE));
                Ok(FoundRuns::in_directory(
                    &newest.directory,
                    &Runs::Previous,
                    notice,
                ))
            }
            (None, Some(other)) => Ok(FoundRuns::chosen(other, &Runs::Newest, BEFORE)),
            (None, None) => Err(self.not_found("expected a run before the newest")),
        }
    }

    /// Describes that all runs in these directories are used, and names them.
    fn all_runs_notice(self, directories: &[impl AsRef<Path>]) -> String {
        let ids_in = |directory: &Path| run_ids(directory, &Runs::All);
        let ids = directories.iter().flat_map(|path| ids_in(path.as_ref()));
        let ids: BTreeSet<String> = ids.collect();
        let mut words: Vec<String> = ids.iter().rev().take(NAMED).cloned().collect();
        if let Some(more) = ids.len().checked_sub(NAMED).filter(|more| *more > 0) {
            words.push(format!("and {more} more"));
        }
        let (directory, words) = (self.directory.display(), words.join(", "));
        format!("taking all runs in {directory}: {words}")
    }

    fn find_live(self) -> Result<FoundRuns, Error> {
        let Some(all) = self.candidates() else {
            return Ok(self.as_named(&Runs::Newest));
        };
        if let Some(live) = all.iter().find(|candidate| candidate.is_live()) {
            return Ok(FoundRuns::chosen(
                live,
                &Runs::Newest,
                "the newest live run",
            ));
        }
        let Some(newest) = all.first() else {
            return Err(self.not_found("expected a live run"));
        };
        Err(Error::NothingUsable(format!(
            "{}: expected a live run, found none that a process still records; the newest is {}",
            self.directory.display(),
            newest.directory.display()
        )))
    }

    /// Returns the directories with runs, newest first. `None` if the directory itself is meant.
    fn candidates(self) -> Option<Vec<Candidate>> {
        if self.is_named && has_fragments(self.directory, &Runs::Newest) {
            return None;
        }
        let mut all = run_folders(self.directory);
        if self.is_named && all.is_empty() {
            return None;
        }
        all.extend(Candidate::read(self.directory, &Runs::Newest));
        all.sort_by(|one, other| {
            let key = |candidate: &Candidate| (candidate.began_ns, candidate.directory.clone());
            key(other).cmp(&key(one))
        });
        Some(all)
    }

    fn as_named(self, runs: &Runs) -> FoundRuns {
        FoundRuns::in_directory(self.directory, runs, None)
    }

    fn not_found(self, expected: &str) -> Error {
        Error::NothingUsable(format!(
            "{}: {expected}, found none: sa-profile run -- COMMAND records one",
            self.directory.display()
        ))
    }
}

fn has_fragments(directory: &Path, runs: &Runs) -> bool {
    let found = input::find(&[directory.to_owned()], runs);
    !found.files.is_empty()
}

/// Returns the ids of the runs of a directory, as far as their fragments contain them.
fn run_ids(directory: &Path, runs: &Runs) -> BTreeSet<String> {
    let files = input::find(&[directory.to_owned()], runs).files;
    let headers = files
        .iter()
        .filter_map(|file| header_at(&file.place, false));
    headers.map(|header| header.run).collect()
}

/// Returns the folders that `sa-profile run` created and that contain a recording. An empty folder belongs to a run that is just starting.
fn run_folders(directory: &Path) -> Vec<Candidate> {
    let entries = Folder::open(directory)
        .and_then(|folder| folder.entries())
        .into_iter()
        .flatten();
    let names =
        entries.filter_map(|entry| entry.name.into_string().ok().filter(|_| entry.is_folder));
    names
        .filter(|name| ![FRAGMENTS_DIR, PREVIOUS_DIR].contains(&name.as_str()))
        .filter_map(|name| {
            let candidate = Candidate::read(&directory.join(&name), &Runs::Newest)?;
            let run = candidate
                .processes
                .first()
                .map_or("", |process| &process.header.run);
            is_run_folder_name(&name, run).then_some(candidate)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::{anchor, header};
    use sa_format::{FragmentHeader, Record};
    use std::fs;
    use tempfile::TempDir;

    /// Writes the fragment of a run that began at this time.
    fn record(directory: &Path, run: &str, realtime_ns: u64) {
        let header = FragmentHeader {
            run: run.to_owned(),
            ..header(1)
        };
        let text = [header.line(1), anchor(1, realtime_ns).line(1)].concat();
        let fragments = directory.join(FRAGMENTS_DIR);
        fs::create_dir_all(&fragments).unwrap();
        fs::write(fragments.join("trace.1.jsonl"), text).unwrap();
    }

    /// Creates two runs in folders, an empty folder, and a copy of a run, which `sa-profile run` did not create.
    fn folders() -> TempDir {
        let root = TempDir::new().unwrap();
        let first = "20260101-000000";
        record(&root.path().join(first), "20260101-000000-a", 100);
        record(&root.path().join("job-7"), "job-7", 300);
        record(&root.path().join("aside"), "20260101-000000-a", 400);
        fs::create_dir(root.path().join("20260109-000000")).unwrap();
        root
    }

    /// Asserts which folders are found for a directory, and the notice about them.
    fn expect(root: &TempDir, are_named: bool, runs: &Runs, folders: &[&str], notice: &str) {
        let found = find_runs(&[root.path().to_owned()], are_named, runs).unwrap();
        let below = found.paths.iter().map(|path| path.strip_prefix(root));
        assert!(
            below.eq(folders.iter().map(|path| Ok(Path::new(path)))),
            "{found:?}"
        );
        let root = root.path().display().to_string();
        assert_eq!(found.notices.join(", ").replace(&root, "DIR"), notice);
    }

    const FIRST: &str = "20260101-000000";
    const TAKEN: &str = "taking DIR, the run before the newest";
    const JOB: &str = "taking DIR/job-7, the newest run";

    #[test]
    fn folders_of_runs_are_searched() {
        let root = folders();
        for are_named in [false, true] {
            let expect = |runs, folders: &[&str], notice: &str| {
                expect(&root, are_named, &runs, folders, notice);
            };
            expect(Runs::Newest, &["job-7"], JOB);
            let before = format!("taking DIR/{FIRST}, the run before the newest");
            expect(Runs::Previous, &[FIRST], &before);
            let named = format!("taking DIR/{FIRST}, which has this run");
            expect(Runs::Named(format!("{FIRST}-a")), &[FIRST], &named);
        }
        // A run in the directory itself is preferred if the directory was named or the run is newer.
        record(root.path(), "b", 200);
        expect(&root, true, &Runs::Newest, &[""], "");
        expect(&root, false, &Runs::Newest, &["job-7"], JOB);
        expect(&root, false, &Runs::Previous, &[""], TAKEN);
        record(root.path(), "b", 500);
        expect(
            &root,
            false,
            &Runs::Newest,
            &[""],
            "taking DIR, the newest run",
        );
    }

    /// The run in the directory is the newest one. It has one before it in `previous`, and there are older runs in folders.
    #[test]
    fn issue_47_the_run_before_the_newest_is_the_last_one_before_it() {
        let root = folders();
        record(root.path(), "new", 500);
        let earlier = root.path().join(PREVIOUS_DIR).join("old");
        let old = "taking run old in DIR, the run before the newest";
        let folder = "taking DIR/job-7, the run before the newest";
        for (began_ns, taken, notice) in [(350, "", old), (250, "job-7", folder)] {
            record(&earlier, "old", began_ns);
            expect(&root, false, &Runs::Previous, &[taken], notice);
            // If the directory was named, the run before is searched for in this directory only.
            expect(&root, true, &Runs::Previous, &[""], old);
        }
        // All runs are named.
        let all = "taking all runs in DIR: old, new";
        expect(&root, true, &Runs::All, &[""], all);
        let all = format!("{all}, job-7, {FIRST}-a");
        expect(&root, false, &Runs::All, &["", "job-7", FIRST], &all);
        // Then the run in a folder is the newest.
        record(&root.path().join("job-7"), "job-7", 900);
        expect(&root, false, &Runs::Previous, &[""], TAKEN);
    }

    #[test]
    fn one_directory_and_several_have_no_common_run_before_the_newest() {
        let (root, single) = (folders(), TempDir::new().unwrap());
        record(single.path(), "c", 1);
        let paths = [root.path().to_owned(), single.path().to_owned()];
        assert!(find_runs(&paths, true, &Runs::Previous).is_err());
        let found = find_runs(&paths, true, &Runs::Newest).unwrap();
        assert_eq!(found.paths.len(), 2);
    }
}
