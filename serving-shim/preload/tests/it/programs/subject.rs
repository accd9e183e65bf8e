//! A program that is run in several ways, and what must be the same in each of them.

use crate::ground::{Ended, Ground, Running, beside, end, preload, skip};
use crate::trace::Trace;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// What `inside.c` calls.
const LAUNCH: &str = "aclrtLaunchKernel";
/// How long the last processes of a program may take to go on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where Debian keeps the servers of each version of PostgreSQL.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Without anything of ours.
    Plain,
    /// Preloaded, with recording on: as it asks nothing of an NPU, nothing may come of it.
    Preloaded,
    /// The same, and all of its processes launch.
    Recording,
    /// The same below `sa-profile run --preload`.
    Run,
}

impl Way {
    /// Whether there is something recorded.
    pub(super) fn records(self) -> bool {
        matches!(self, Way::Recording | Way::Run)
    }

    fn word(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Preloaded => "preloaded",
            Way::Recording => "recording",
            Way::Run => "run",
        }
    }
}

/// A program on ground of its own.
pub(super) struct Subject {
    pub(super) ground: Ground,
    test: &'static str,
    /// A copy of the library under test, by which its processes are known.
    library: PathBuf,
}

impl Subject {
    /// Prepares the ground; `None` where one of the programs is not installed, and says that the test is skipped.
    pub(super) fn new(test: &'static str, programs: &[&str]) -> Option<Subject> {
        if let Some(absent) = programs.iter().find(|program| find(program).is_none()) {
            skip(test, &format!("{absent} is not installed"));
            return None;
        }
        let ground = Ground::new();
        // Some of them go on as another user.
        fs::set_permissions(ground.path("."), fs::Permissions::from_mode(0o755)).unwrap();
        let library = ground.path("libsa_profile_preload.so");
        fs::copy(preload(), &library).unwrap();
        ground.library("libascendcl.so", "quiet_acl.c", &[] as &[&str]);
        ground.library("libinside.so", "inside.c", &["-l:libascendcl.so"]);
        Some(Subject {
            ground,
            test,
            library,
        })
    }

    /// All ways but [`Way::Run`].
    pub(super) const WAYS: [Way; 3] = [Way::Plain, Way::Preloaded, Way::Recording];

    /// All ways; says so where `sa-profile` was not built.
    pub(super) fn all_ways(&self) -> Vec<Way> {
        let mut ways = Subject::WAYS.to_vec();
        match sa_profile() {
            Some(_) => ways.push(Way::Run),
            None => skip(self.test, "below sa-profile run: sa-profile is not built"),
        }
        ways
    }

    /// Where the program works, a folder for each way.
    pub(super) fn work(&self, way: Way) -> PathBuf {
        let work = self.ground.path(&format!("work-{}", way.word()));
        fs::create_dir_all(work.join("tmp")).unwrap();
        work
    }

    /// The run directory of a way.
    pub(super) fn run(&self, way: Way) -> PathBuf {
        self.ground.path(&format!("recorded-{}", way.word()))
    }

    /// A program to be run in a way.
    pub(super) fn command(&self, way: Way, program: &str, arguments: &[&str]) -> Command {
        let program = find(program).unwrap();
        let (run, library) = (self.run(way), self.library.display().to_string());
        let mut command = match way {
            Way::Run => {
                let mut command = self.ground.command(sa_profile().unwrap());
                command.arg("run").arg(format!("--preload={library}"));
                command.arg("-d").arg(&run).arg("--").arg("env");
                // Not for sa-profile itself, which has the one library and not the other.
                let ledger = self.ledger(way).display().to_string();
                command.arg(format!("SA_TEST_LEDGER={ledger}")).arg(program);
                command
            }
            _ => self.ground.command(program),
        };
        let work = self.work(way);
        command.args(arguments).env("TMPDIR", work.join("tmp"));
        command.env("HOME", &work).current_dir(work);
        let inside = self.ground.text("libinside.so");
        let preloads = match way {
            Way::Plain => return command,
            Way::Preloaded => library,
            Way::Recording => format!("{library}:{inside}"),
            Way::Run => inside,
        };
        command.env("LD_PRELOAD", preloads);
        if way != Way::Run {
            // The run's name, as sa-profile run gives it: an exec gives up the lock by which others find the run.
            command
                .env("SA_PROFILE_DIR", run)
                .env("SA_PROFILE_RUN", "one");
        }
        if way == Way::Recording {
            command.env("SA_TEST_LEDGER", self.ledger(way));
        }
        command
            .env("SA_PROFILE_DEVICE", "off")
            .env("SA_PROFILE_DEVICE_SAMPLE", "1");
        command
    }

    /// Starts a program.
    pub(super) fn start(&self, way: Way, program: &str, arguments: &[&str]) -> Running {
        Running::of(&mut self.command(way, program, arguments))
    }

    /// Runs a program in each way to its end; what it says and how it ends is the same. What is on stderr below `sa-profile run` is the command's as well.
    pub(super) fn assert_the_same(&self, program: &str, arguments: &[&str]) -> Ended {
        self.assert_the_same_with(&[], program, arguments)
    }

    /// The same with these variables.
    pub(super) fn assert_the_same_with(
        &self,
        variables: &[(&str, &str)],
        program: &str,
        arguments: &[&str],
    ) -> Ended {
        let mut plain: Option<Ended> = None;
        for way in self.all_ways() {
            let mut command = self.command(way, program, arguments);
            let ended = end(command.envs(variables.iter().copied()));
            let expected = plain.get_or_insert_with(|| ended.clone());
            assert_eq!(
                (ended.code, &ended.stdout),
                (expected.code, &expected.stdout),
                "{way:?}: {ended:?}"
            );
            if way != Way::Run {
                assert_eq!(ended.stderr, expected.stderr, "{way:?}");
            }
            self.assert_unnoticed(way);
        }
        plain.unwrap()
    }

    /// Asserts that no process and no file of ours is left, and that what was recorded is whole.
    pub(super) fn assert_unnoticed(&self, way: Way) {
        self.assert_no_process_left(way);
        let files = |way| files_below(&self.work(way));
        assert_eq!(files(way), files(Way::Plain), "{way:?}");
        if way.records() {
            self.assert_whole(way);
        } else {
            assert!(!self.run(way).exists(), "{way:?} made a run directory");
        }
    }

    /// Asserts that each launch that returned is in the trace, and that viewers lose nothing of it.
    pub(super) fn assert_whole(&self, way: Way) -> Trace {
        let trace = self.trace(way);
        let (begun, returned) = self.launches(way);
        let recorded = (trace.count(LAUNCH) + trace.unfinished(LAUNCH).len()) as u64;
        assert!(
            returned > 0 && (returned..=begun).contains(&(recorded + trace.lost())),
            "{way:?}: recorded {recorded}, lost {}, launched {returned} to {begun}",
            trace.lost()
        );
        trace
    }

    /// Returns the trace of a run in this way, and asserts that viewers lose nothing of it.
    pub(super) fn trace(&self, way: Way) -> Trace {
        Trace::with_losses(&self.run(way))
    }

    /// How many launches were begun in a way, and how many of them returned.
    pub(super) fn launches(&self, way: Way) -> (u64, u64) {
        let ledger = fs::read(self.ledger(way)).unwrap();
        let word = |at: usize| u64::from_ne_bytes(ledger[at..at + 8].try_into().unwrap());
        (word(0), word(8))
    }

    /// The file in which a way's processes count their launches; any user may write there.
    fn ledger(&self, way: Way) -> PathBuf {
        let ledger = self.ground.path(&format!("ledger-{}", way.word()));
        if !ledger.exists() {
            fs::write(&ledger, [0; 16]).unwrap();
            fs::set_permissions(&ledger, fs::Permissions::from_mode(0o666)).unwrap();
        }
        ledger
    }

    /// Waits until no process has the library any more.
    pub(super) fn assert_no_process_left(&self, way: Way) {
        let start = Instant::now();
        let library = self.library.display().to_string();
        loop {
            let left = processes_with(&library);
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{way:?} left {left:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns true if this command, which starts another one, works on this machine.
pub(super) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut tried = Command::new(find(program).unwrap());
    let tried = tried.args(arguments).arg("true").output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// The path of a program.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let postgresql = fs::read_dir(POSTGRESQL).into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .chain(postgresql.map(|version| version.path().join("bin")));
    let mut paths = folders.map(|folder| folder.join(program));
    paths.find(|path| path.is_file())
}

/// `sa-profile`, where building the workspace has put it.
fn sa_profile() -> Option<PathBuf> {
    let program = beside("../sa-profile");
    program.exists().then_some(program)
}

/// The command lines of the processes that have mapped a file.
fn processes_with(file: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.map(|entry| entry.path());
    let with_file = folders.filter(|folder| {
        fs::read_to_string(folder.join("maps")).is_ok_and(|maps| maps.contains(file))
    });
    let words = |folder: PathBuf| fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
    with_file.map(words).collect()
}

/// The names of all files below a folder.
fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(folder).unwrap().to_owned());
        }
    }
    found
}
