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
    /// The names of version 2.
    unified: bool,
}

impl MemoryGroup {
    /// Makes a group of at most `bytes`; `None` where that is not allowed, and says that the test is skipped.
    pub fn limited(test: &str, bytes: u64) -> Option<MemoryGroup> {
        let made = own_group().and_then(|(path, unified)| {
            if unified {
                // Refused where it is set already, or cannot be: then the new group has no limit to write, below.
                let _ = fs::write(path.join("cgroup.subtree_control"), "+memory");
            }
            let path = path.join(format!("sa-profile-{}", std::process::id()));
            fs::create_dir(&path)?;
            let group = MemoryGroup { path, unified };
            let limit = if unified {
                "memory.max"
            } else {
                "memory.limit_in_bytes"
            };
            fs::OpenOptions::new()
                .write(true)
                .open(group.path.join(limit))
                .and_then(|mut file| {
                    io::Write::write_all(&mut file, bytes.to_string().as_bytes())
                })?;
            Ok(group)
        });
        made.inspect_err(|error| skip(test, &format!("no control group can be made: {error}")))
            .ok()
    }

    /// A shell's words that enter the group and start what follows them.
    pub fn enter(&self) -> String {
        format!(
            r#"echo $$ > '{}/cgroup.procs' && exec "$0" "$@""#,
            self.path.display()
        )
    }

    /// Bytes of files that its processes have mapped.
    pub fn mapped_bytes(&self) -> u64 {
        let name = if self.unified {
            "file_mapped "
        } else {
            "mapped_file "
        };
        let stat = fs::read_to_string(self.path.join("memory.stat")).expect("the group's counters");
        let value = stat.lines().find_map(|line| line.strip_prefix(name));
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

/// The group that limits this process's memory, and whether it is one of version 2.
fn own_group() -> io::Result<(PathBuf, bool)> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let found = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, unified) = match controllers {
            "" => ("/sys/fs/cgroup", true),
            "memory" => ("/sys/fs/cgroup/memory", false),
            _ => return None,
        };
        let group = Path::new(root).join(path.trim_start_matches('/'));
        group
            .join("cgroup.procs")
            .exists()
            .then_some((group, unified))
    });
    found.ok_or_else(|| io::Error::other("its files are not there"))
}
