//! A program that is run in several ways, and what must be the same in all of them.

use c_programs::{Ended, Ground, NONE, Trace, end, preload, skip, success, wait_for};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Group of the unprivileged user.
const NOBODY: u32 = 65534;
/// Settings from the manual for programs that give up their rights: group-writable files and a run directory of that group.
pub(super) const MODE: (&str, &str) = ("SA_PROFILE_MODE", "0660");
/// Runtime library that `inside.c` calls.
const LAUNCH: &str = "aclrtLaunchKernel";
/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Without our libraries.
    Plain,
    /// Preloaded, with recording on. The program does not use an NPU, so nothing may be recorded.
    Preloaded,
    /// Preloaded, with recording on and launches in all of its processes.
    Recording,
}

impl Way {
    /// All ways.
    pub(super) const ALL: [Way; 3] = [Way::Plain, Way::Preloaded, Way::Recording];
}

/// A program on its own ground.
pub(super) struct Subject {
    pub(super) ground: Ground,
    /// A copy of the library under test, which identifies the program's processes.
    library: PathBuf,
}

impl Subject {
    /// Prepares the ground. If the program is not installed, reports that the test is skipped and returns `None`.
    pub(super) fn new(test: &str, program: &str) -> Option<Subject> {
        if find(program).is_none() {
            skip(test, &format!("{program} is not installed"));
            return None;
        }
        let ground = Ground::default();
        // Some of them continue as another user.
        fs::set_permissions(ground.path("."), fs::Permissions::from_mode(0o755)).unwrap();
        let library = ground.path("libsa_profile_preload.so");
        fs::copy(preload(), &library).unwrap();
        ground.library("libascendcl.so", "quiet_acl.c", &NONE);
        ground.library("libinside.so", "inside.c", &["-l:libascendcl.so"]);
        // Processes of any user count their launches in this file.
        let ledger = ground.path("ledger");
        fs::write(&ledger, [0; 16]).unwrap();
        fs::set_permissions(&ledger, fs::Permissions::from_mode(0o666)).unwrap();
        Some(Subject { ground, library })
    }

    /// Returns the program's working folder for a way.
    pub(super) fn work(&self, way: Way) -> PathBuf {
        let work = self.ground.path(&format!("work-{way:?}"));
        fs::create_dir_all(work.join("tmp")).unwrap();
        work
    }

    /// Creates the run directory, which the group of the unprivileged user may write to.
    pub(super) fn let_a_group_write(&self) {
        let run = self.ground.run();
        fs::create_dir(&run).unwrap();
        chown(&run, None, Some(NOBODY)).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o2770)).unwrap();
    }

    /// Returns the command that runs the program in a way.
    pub(super) fn command(&self, way: Way, program: &str, arguments: &[&str]) -> Command {
        let (work, library) = (self.work(way), self.library.display());
        let mut command = self.ground.command(find(program).unwrap());
        command.args(arguments).env("TMPDIR", work.join("tmp"));
        command.env("HOME", &work).current_dir(work);
        if way == Way::Plain {
            return command;
        }
        command
            .env("LD_PRELOAD", self.library.as_os_str())
            .env("SA_PROFILE_DIR", self.ground.run())
            // Like sa-profile run, because an exec releases the lock by which other processes find the run.
            .env("SA_PROFILE_RUN", "one")
            .env("SA_PROFILE_DEVICE", "off")
            .env("SA_PROFILE_DEVICE_SAMPLE", "1");
        if way == Way::Recording {
            let inside = self.ground.path("libinside.so");
            command
                .env("LD_PRELOAD", format!("{library}:{}", inside.display()))
                .env("SA_TEST_LEDGER", self.ground.path("ledger"));
        }
        command
    }

    /// Runs a program with these variables in each way. Asserts that output and exit status are the same.
    pub(super) fn assert_the_same(
        &self,
        variables: &[(&str, &str)],
        program: &str,
        arguments: &[&str],
    ) -> Ended {
        let ended = Way::ALL.map(|way| {
            let mut command = self.command(way, program, arguments);
            let ended = end(command.envs(variables.iter().copied()));
            self.assert_unnoticed(way);
            ended
        });
        let [plain, preloaded, recording] = ended;
        assert_eq!((&preloaded, &recording), (&plain, &plain));
        plain
    }

    /// Asserts that no process and no file of ours is left.
    pub(super) fn assert_unnoticed(&self, way: Way) {
        self.assert_no_process_left();
        let files = |way| files_below(&self.work(way));
        assert_eq!(files(way), files(Way::Plain), "{way:?}");
        let is_recorded = self.ground.run().join("fragments").exists();
        assert_eq!(is_recorded, way == Way::Recording, "{way:?}");
    }

    /// Asserts that each launch that returned is in the trace, and that viewers lose no event.
    pub(super) fn assert_whole(&self) -> Trace {
        let trace = Trace::with_losses(&self.ground.run());
        let ledger = fs::read(self.ground.path("ledger")).unwrap();
        let [begun, returned] = [0, 8].map(|at| {
            let count = ledger[at..at + 8].try_into().unwrap();
            u64::from_ne_bytes(count)
        });
        let recorded = (trace.count(LAUNCH) + trace.unfinished(LAUNCH).len()) as u64;
        assert!(
            returned > 0 && (returned..=begun).contains(&(recorded + trace.lost())),
            "recorded {recorded}, lost {}, launched {returned} to {begun}",
            trace.lost()
        );
        trace
    }

    /// Waits until no process has the library loaded.
    pub(super) fn assert_no_process_left(&self) {
        let library = self.library.display().to_string();
        wait_for(|| processes_with(&library).is_empty().then_some(()));
    }
}

/// Returns true if this command, which starts another one, works on this machine.
pub(super) fn works(command: &[&str]) -> bool {
    let tried = find(command[0]).map(|program| {
        let mut tried = Command::new(program);
        tried.args(&command[1..]).arg("true").output().unwrap()
    });
    tried.is_some_and(|tried| tried.status.success())
}

/// Returns the path of a program.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let folders = folders.chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut paths = folders.map(|folder| folder.join(program));
    paths.find(|path| path.is_file())
}

/// Returns the command lines of the processes that have mapped a file.
fn processes_with(file: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.map(|entry| entry.path());
    let with_file = folders.filter(|folder| {
        fs::read_to_string(folder.join("maps")).is_ok_and(|maps| maps.contains(file))
    });
    let words = |folder: PathBuf| fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
    with_file.map(words).collect()
}

/// Returns the names of all files below a folder.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut find = Command::new("find");
    let names = success(find.arg(folder).args(["-printf", "%P\n"]));
    names.lines().map(str::to_owned).collect()
}
