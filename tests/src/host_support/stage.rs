//! A run directory that a second user may write into, and what that user leaves there.

use super::found::Found;
use super::ground::scratch;
use super::host::Host;
use super::live::Live;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The attacker's uid.
pub const ATTACKER: u32 = 65534;
/// Nothing on the stage takes this long unless it hangs.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// What the attacker leaves at a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plant {
    /// A link to a file outside.
    LinkToFile,
    /// A link to a folder outside.
    LinkToFolder,
    /// A link to a named pipe outside; what opens it hangs, as it would write to a device.
    LinkToPipe,
    /// A link to a name outside where nothing is.
    DanglingLink,
    /// A link to itself.
    LinkToItself,
    /// A second name of a file outside.
    HardLink,
    /// A named pipe.
    Pipe,
    /// A file that anybody may write.
    File,
    /// A file that nobody may write.
    ReadOnlyFile,
    /// A folder that anybody may write into.
    Folder,
}

/// Every kind of plant.
pub const PLANTS: [Plant; 10] = [
    Plant::LinkToFile,
    Plant::LinkToFolder,
    Plant::LinkToPipe,
    Plant::DanglingLink,
    Plant::LinkToItself,
    Plant::HardLink,
    Plant::Pipe,
    Plant::File,
    Plant::ReadOnlyFile,
    Plant::Folder,
];

/// A run directory that anybody may write into, and beside it files that nobody may touch.
pub struct Stage {
    program: String,
    root: TempDir,
}

/// Everything about a file that a write, a chmod, a chown or a removal would change.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// Type and permissions.
    pub mode: u32,
    /// Owner's uid.
    pub owner: u32,
    modified_ns: (i64, i64),
    content: Option<Vec<u8>>,
}

impl Stage {
    /// Sets the stage for the host program at `program`.
    pub fn new(program: &str) -> Stage {
        let root = scratch();
        let stage = Stage {
            program: program.to_owned(),
            root,
        };
        open_to_all(stage.root.path(), 0o755);
        fs::create_dir(stage.dir()).expect("a new directory");
        open_to_all(&stage.dir(), 0o777);
        let folder = stage.outside().join("folder");
        fs::create_dir_all(folder.join("inner")).expect("a new directory");
        for name in [
            "secret",
            "folder/run",
            "folder/trace.1.jsonl",
            "folder/trace.1.ring",
            "folder/inner/trace.2.jsonl",
        ] {
            fs::write(stage.outside().join(name), "precious\n").expect("a new file");
        }
        let pipe = Command::new("mkfifo")
            .arg(stage.outside().join("pipe"))
            .status();
        assert!(pipe.expect("mkfifo starts").success());
        stage
    }

    /// The run directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("run-directory")
    }

    /// The folder that must never change.
    pub fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    /// Makes a folder of the victim's that anybody may write into.
    pub fn open_folder(&self, name: &str) {
        fs::create_dir_all(self.dir().join(name)).expect("a new directory");
        open_to_all(&self.dir().join(name), 0o777);
    }

    /// Lets the attacker run a line of shell in the run directory.
    pub fn attack(&self, line: &str) {
        let status = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.dir())
            .uid(ATTACKER)
            .gid(ATTACKER)
            .status();
        assert!(
            status.expect("sh starts").success(),
            "the attack itself works: {line}"
        );
    }

    /// Lets the attacker leave something at a name in the run directory.
    pub fn plant(&self, plant: Plant, name: &str) {
        let outside = self.outside().display().to_string();
        let line = match plant {
            Plant::LinkToFile => format!("ln -s {outside}/secret {name}"),
            Plant::LinkToFolder => format!("ln -s {outside}/folder {name}"),
            Plant::LinkToPipe => format!("ln -s {outside}/pipe {name}"),
            Plant::DanglingLink => format!("ln -s {outside}/absent {name}"),
            Plant::LinkToItself => format!("ln -s $(basename {name}) {name}"),
            Plant::Pipe => format!("mkfifo -m 0666 {name}"),
            Plant::File => format!("echo planted > {name}; chmod 0666 {name}"),
            Plant::ReadOnlyFile => format!("echo planted > {name}; chmod 0444 {name}"),
            Plant::Folder => format!("mkdir -m 0777 {name}"),
            Plant::HardLink => {
                // Kernels with fs.protected_hardlinks forbid it to the attacker; others do not.
                let secret = self.outside().join("secret");
                return fs::hard_link(secret, self.dir().join(name)).expect("a hard link");
            }
        };
        self.attack(&line);
    }

    /// The folder that holds run directory and outside.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Removes what was planted, so that the spans can be read without meeting it.
    pub fn clear(&self, name: &str) {
        let path = self.dir().join(name);
        let removed = if is_folder(&path) {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.expect("the planted thing is still there");
    }

    /// Starts a host that is led by hand.
    pub fn script(&self) -> Live {
        Host::new(&self.program)
            .arguments(&["script"])
            .recorded_in(&self.dir())
            .variable("SA_PROFILE_THREADS", "1") // idle, and obeys controls all the same
            .deadline(DEADLINE)
            .start()
    }

    /// Starts a host that has not yet touched the directory.
    pub fn at_the_gate(&self) -> Live {
        let host = Host::new(&self.program).arguments(&["--gate", "spans", "work", "500"]);
        host.recorded_in(&self.dir())
            .variable("SA_PROFILE_OLD_RUNS", "0")
            .deadline(DEADLINE)
            .start()
    }

    /// The number of spans labelled `work` in the run directory.
    pub fn recorded(&self) -> u64 {
        let fragments = self.dir().join("fragments");
        if is_folder(&fragments) {
            Found::in_dir(&fragments)
                .counts()
                .get("work")
                .copied()
                .unwrap_or(0)
        } else {
            0
        }
    }
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own directory");
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Looks at one name without following it.
pub fn look(path: &Path) -> Seen {
    let metadata = fs::symlink_metadata(path)
        .unwrap_or_else(|error| panic!("{} is gone: {error}", path.display()));
    let content = match metadata.file_type() {
        kind if kind.is_file() => fs::read(path).ok(),
        kind if kind.is_symlink() => fs::read_link(path)
            .ok()
            .map(|target| target.into_os_string().into_encoded_bytes()),
        _ => None,
    };
    Seen {
        mode: metadata.mode(),
        owner: metadata.uid(),
        modified_ns: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    }
}

/// Everything below a directory.
pub fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = BTreeMap::from([(dir.to_owned(), look(dir))]);
    if is_folder(dir) {
        for entry in fs::read_dir(dir).expect("the directory").flatten() {
            all.extend(snapshot(&entry.path()));
        }
    }
    all
}
