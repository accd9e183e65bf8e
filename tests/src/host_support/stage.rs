//! A run directory that a second user may write into, and the files which that user plants.

use super::ground::{full, make_folder, scratch, set_mode};
use super::host::Host;
use super::live::Live;
use super::recording::HostRecording;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Uid of the attacker.
pub const ATTACKER: u32 = 65534;
/// Deadline for anything in these tests. Only a hang takes this long.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Commands that release a host waiting in [`Stage::at_the_gate`].
pub const GO: &str = "init, spans work 500";

/// Something that the attacker leaves under a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    /// Name of this kind of plant.
    pub kind: &'static str,
    /// Shell command that creates it at `$1`. `$2` is the folder `outside`.
    line: &'static str,
}

const fn plant(kind: &'static str, line: &'static str) -> Plant {
    Plant { kind, line }
}

/// All kinds of plant.
const PLANTS: [Plant; 10] = [
    plant("link to a file", "ln -s $2/secret $1"),
    plant("file", "echo planted > $1; chmod 0666 $1"),
    // Opening this hangs. If the target were a device, a program would write to it.
    plant("link to a pipe", "ln -s $2/pipe $1"),
    plant("dangling link", "ln -s $2/absent $1"),
    plant("link to a folder", "ln -s $2/folder $1"),
    plant("link to itself", "ln -s $(basename $1) $1"),
    plant("second name of a file", HARD_LINK),
    plant("read-only file", "echo planted > $1; chmod 0444 $1"),
    plant("folder", "mkdir -m 0777 $1"),
    plant("pipe", "mkfifo -m 0666 $1"),
];

/// Returns the plants to test: half of them, or all with `SA_PROFILE_FULL=1`.
pub fn plants() -> impl Iterator<Item = Plant> {
    PLANTS.into_iter().step_by(if full() { 1 } else { 2 })
}

/// The attacker may not create this link on kernels with `fs.protected_hardlinks`, so root does.
const HARD_LINK: &str = "ln $2/secret $1";

/// A run directory that anybody may write into, next to files that must not change.
pub struct Stage {
    program: String,
    root: TempDir,
}

/// State of a file, complete enough that any write, chmod, chown or removal changes it.
#[derive(Debug, PartialEq)]
pub struct FileState {
    /// Type and permissions.
    pub mode: u32,
    /// Uid of the owner.
    pub owner: u32,
    modified_ns: (i64, i64),
    content: Option<Vec<u8>>,
}

impl Stage {
    /// Sets up the directories for the host program at `program`.
    pub fn new(program: &str) -> Stage {
        let root = scratch();
        let stage = Stage {
            program: program.to_owned(),
            root,
        };
        set_mode(stage.root.path(), 0o755);
        make_folder(&stage.dir(), 0o777);
        fs::create_dir_all(stage.outside().join("folder/inner")).expect("a new directory");
        for name in [
            "secret",
            "folder/run",
            "folder/trace.1.jsonl",
            "folder/trace.1.ring",
            "folder/inner/trace.2.jsonl",
        ] {
            fs::write(stage.outside().join(name), "precious\n").expect("a new file");
        }
        stage.run_line("mkfifo ../outside/pipe", &[], false);
        stage
    }

    /// Returns the path of the run directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("run-directory")
    }

    /// Returns the path of the folder that must never change.
    pub fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    /// Creates a folder of the victim that anybody may write into.
    pub fn open_folder(&self, name: &str) {
        make_folder(&self.dir().join(name), 0o777);
    }

    /// Runs a shell command in the run directory as the attacker.
    pub fn attack(&self, line: &str) {
        self.run_line(line, &[], true);
    }

    fn run_line(&self, line: &str, arguments: &[&str], as_attacker: bool) {
        let mut shell = Command::new("sh");
        shell.args(["-c", line, "sh"]).args(arguments);
        shell.current_dir(self.dir());
        if as_attacker {
            shell.uid(ATTACKER).gid(ATTACKER);
        }
        let status = shell.status().expect("sh starts");
        assert!(status.success(), "the attack itself works: {line}");
    }

    /// Lets the attacker plant something under a name in the run directory.
    pub fn plant(&self, plant: Plant, name: &str) {
        let outside = self.outside().display().to_string();
        self.run_line(plant.line, &[name, &outside], plant.line != HARD_LINK);
    }

    /// Returns the folder that contains the run directory and `outside`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Removes a plant, so that it does not interfere with reading the spans.
    pub fn clear(&self, name: &str) {
        self.run_line("rm -r $1", &[name], false);
    }

    /// Prepares a host that records into the run directory.
    fn host(&self, arguments: &[&str]) -> Host {
        let host = Host::new(&self.program).arguments(arguments);
        host.recorded_in(&self.dir()).deadline(DEADLINE)
    }

    /// Starts a host that the test drives with commands.
    pub fn script(&self) -> Live {
        let host = self.host(&["script"]);
        host.variable("SA_PROFILE_THREADS", "1").start() // obeys controls even while the host is idle
    }

    /// Starts a host that does not touch the run directory before it gets the commands in `GO`.
    pub fn at_the_gate(&self) -> Live {
        let host = self.host(&["--lazy", "script"]);
        host.variable("SA_PROFILE_OLD_RUNS", "0").start()
    }

    /// Returns the number of spans labelled `work` in the run directory.
    pub fn recorded(&self) -> u64 {
        let fragments = self.dir().join("fragments");
        let counts = is_folder(&fragments).then(|| HostRecording::in_dir(&fragments).counts());
        let recorded = counts.and_then(|counts| counts.get("work").copied());
        recorded.unwrap_or(0)
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Returns the state of a file, without following symbolic links.
pub fn file_state(path: &Path) -> FileState {
    let metadata = fs::symlink_metadata(path)
        .unwrap_or_else(|error| panic!("{} is gone: {error}", path.display()));
    let content = match metadata.file_type() {
        kind if kind.is_file() => fs::read(path).ok(),
        kind if kind.is_symlink() => {
            let target = fs::read_link(path).ok();
            target.map(|target| target.into_os_string().into_encoded_bytes())
        }
        _ => None,
    };
    FileState {
        mode: metadata.mode(),
        owner: metadata.uid(),
        modified_ns: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    }
}

/// Returns the state of everything below a directory.
pub fn snapshot(dir: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut all = BTreeMap::from([(dir.to_owned(), file_state(dir))]);
    if is_folder(dir) {
        for entry in fs::read_dir(dir).expect("the directory").flatten() {
            all.extend(snapshot(&entry.path()));
        }
    }
    all
}
