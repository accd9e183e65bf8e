//! A control group with a memory limit, for both versions of cgroups.

use super::ground::skip;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Time that the kernel gets to release a group after its processes have ended.
const PATIENCE: Duration = Duration::from_secs(20);

/// A control group below the test's own, removed when dropped.
pub struct MemoryGroup {
    path: PathBuf,
    /// Key in `memory.stat` for the size of mapped files.
    mapped: &'static str,
}

/// For each cgroup version: controllers of the group, mount point, file with the limit, and `memory.stat` key for mapped files.
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
    /// Creates a group limited to `bytes`. Returns `None` and reports the test as skipped if that is not permitted.
    pub fn limited(bytes: u64) -> Option<MemoryGroup> {
        let group = own_group().and_then(|(path, [_, _, limit, mapped])| {
            // This write fails if the controller is enabled already or cannot be. In the second case the new group has no limit file, which is checked below.
            let _ = fs::write(path.join("cgroup.subtree_control"), "+memory");
            let path = path.join(format!("sa-profile-{}", std::process::id()));
            fs::create_dir(&path)?;
            let group = MemoryGroup { path, mapped };
            let limit = group.path.join(limit);
            fs::metadata(&limit)?; // without this check, the write could create a plain file
            fs::write(limit, bytes.to_string()).map(|()| group)
        });
        let refused = |error: &io::Error| skip(&format!("no control group can be made: {error}"));
        group.inspect_err(refused).ok()
    }

    /// Returns a shell script that enters the group and then executes its arguments.
    pub fn enter(&self) -> String {
        let path = self.path.display();
        format!(r#"echo $$ > '{path}/cgroup.procs' && exec "$0" "$@""#)
    }

    /// Returns the number of bytes of files that the group's processes have mapped.
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

/// Returns the group that limits this process's memory, and the cgroup version.
fn own_group() -> io::Result<(PathBuf, [&'static str; 4])> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let found = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let version = VERSIONS.iter().find(|version| version[0] == controllers)?;
        let group = Path::new(version[1]).join(path.trim_start_matches('/'));
        let exists = group.join("cgroup.procs").exists();
        exists.then_some((group, *version))
    });
    found.ok_or_else(|| io::Error::other("no control group with a memory controller"))
}
