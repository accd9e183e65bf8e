//! A control group with a memory limit, in either version's files.

use super::ground::skip;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long the kernel may take to let go of a group whose processes have ended.
const PATIENCE: Duration = Duration::from_secs(20);

/// A control group below the test's own, removed when dropped.
pub struct MemoryGroup {
    path: PathBuf,
    /// Name of the size of mapped files in its statistics.
    mapped: &'static str,
}

/// Of each version of control groups: controllers of a group, where the groups are, the file of the limit, and the name of the size of mapped files.
const VERSIONS: [[&str; 4]; 2] = [
    ["", "/sys/fs/cgroup", "memory.max", "file_mapped "],
    [
        "memory",
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "mapped_file ",
    ],
];

impl MemoryGroup {
    /// Makes a group of at most `bytes`; `None` where that is not allowed, and says that the test is skipped.
    pub fn limited(bytes: u64) -> Option<MemoryGroup> {
        let made = own_group().and_then(|(path, [_, _, limit, mapped])| {
            // Refused where it is set already, or cannot be: then the new group has no limit to write, below.
            let _ = fs::write(path.join("cgroup.subtree_control"), "+memory");
            let path = path.join(format!("sa-profile-{}", std::process::id()));
            fs::create_dir(&path)?;
            let group = MemoryGroup { path, mapped };
            let limit = group.path.join(limit);
            fs::metadata(&limit)?; // it is there, or a write would make it
            fs::write(limit, bytes.to_string()).map(|()| group)
        });
        let refused = |error: &io::Error| skip(&format!("no control group can be made: {error}"));
        made.inspect_err(refused).ok()
    }

    /// A shell's words that enter the group and start what follows them.
    pub fn enter(&self) -> String {
        let path = self.path.display();
        format!(r#"echo $$ > '{path}/cgroup.procs' && exec "$0" "$@""#)
    }

    /// Bytes of files that its processes have mapped.
    pub fn mapped_bytes(&self) -> u64 {
        let stat = fs::read_to_string(self.path.join("memory.stat")).expect("the group's counters");
        let mut lines = stat.lines();
        let value = lines.find_map(|line| line.strip_prefix(self.mapped));
        value
            .and_then(|bytes| bytes.parse().ok())
            .expect("a count of bytes")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let start = Instant::now();
        while fs::remove_dir(&self.path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            && start.elapsed() < PATIENCE
        {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The group that limits this process's memory, and its version.
fn own_group() -> io::Result<(PathBuf, [&'static str; 4])> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let found = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let version = VERSIONS.iter().find(|of| of[0] == controllers)?;
        let group = Path::new(version[1]).join(path.trim_start_matches('/'));
        let exists = group.join("cgroup.procs").exists();
        exists.then_some((group, *version))
    });
    found.ok_or_else(|| io::Error::other("its files are not there"))
}
