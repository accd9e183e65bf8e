//! Checks the limits of this process, which the recorded processes inherit, and of its control group.

use super::finding::{Check, Finding};
use crate::words::amount::{grouped, size};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use std::fs;
use std::path::Path;

const FILE_SIZE: Check = Check("file size");
const OPEN_FILES: Check = Check("open files");
const ADDRESS_SPACE: Check = Check("address space");
const MEMORY: Check = Check("memory");

/// Minimum file size. With less, no thread gets its 256 KiB of the ring file, and nothing is recorded.
const LEAST_FILE_BYTES: u64 = 320 << 10;
/// Number of open files below which a warning is given. A recorder needs few descriptors, but a serving process needs many.
const FEW_FILES: u64 = 64;
/// Size of the address space below which a warning is given. Each thread's ring is mapped twice in a row.
const LITTLE_ADDRESS_SPACE: u64 = 1 << 30;
const LITTLE_MEMORY: u64 = 512 << 20;

/// Checks the limits.
pub(crate) fn examine() -> Vec<Finding> {
    let soft = |resource| getrlimit(resource).map_or(RLIM_INFINITY, |(soft, _)| soft);
    vec![
        file_size(soft(Resource::RLIMIT_FSIZE)),
        files(soft(Resource::RLIMIT_NOFILE)),
        address_space(soft(Resource::RLIMIT_AS)),
        memory(memory_limit()),
    ]
}

fn file_size(limit: u64) -> Finding {
    const HINT: &str = "raise it: ulimit -f unlimited";
    match limit {
        RLIM_INFINITY => FILE_SIZE.ok("unlimited"),
        0..LEAST_FILE_BYTES => FILE_SIZE.fail(format!("limited to {}", size(limit)), HINT),
        _ => FILE_SIZE.warn(
            format!(
                "limited to {}: events beyond that are lost and counted",
                size(limit)
            ),
            HINT,
        ),
    }
}

fn files(limit: u64) -> Finding {
    match limit {
        RLIM_INFINITY => OPEN_FILES.ok("unlimited"),
        0..FEW_FILES => OPEN_FILES.warn(format!("limited to {limit}"), "raise it: ulimit -n 1024"),
        _ => OPEN_FILES.ok(format!("limited to {}", grouped(limit))),
    }
}

fn address_space(limit: u64) -> Finding {
    match limit {
        RLIM_INFINITY => ADDRESS_SPACE.ok("unlimited"),
        0..LITTLE_ADDRESS_SPACE => ADDRESS_SPACE.warn(
            format!("limited to {}", size(limit)),
            "each recording thread maps 512 KiB; raise it: ulimit -v unlimited",
        ),
        _ => ADDRESS_SPACE.ok(format!("limited to {}", size(limit))),
    }
}

fn memory(limit: Option<u64>) -> Finding {
    match limit {
        None => MEMORY.ok("no limit by the control group"),
        Some(limit @ 0..LITTLE_MEMORY) => MEMORY.warn(
            format!("the control group is limited to {}", size(limit)),
            "each recording thread's ring takes 256 KiB of it, and page cache counts too",
        ),
        Some(limit) => MEMORY.ok(format!("the control group is limited to {}", size(limit))),
    }
}

/// Returns the lowest memory limit of this process's control group and its parents, for cgroup version 1 or 2.
fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limit = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        match controllers {
            "" => least_above(Path::new("/sys/fs/cgroup"), path, "memory.max"),
            "memory" => least_above(
                Path::new("/sys/fs/cgroup/memory"),
                path,
                "memory.limit_in_bytes",
            ),
            _ => None,
        }
    };
    groups.lines().filter_map(limit).min()
}

fn least_above(root: &Path, path: &str, file: &str) -> Option<u64> {
    // In a container the path may be the one on the host. Then the root is the container's own group.
    let leaf = Some(root.join(path))
        .filter(|leaf| leaf.is_dir())
        .unwrap_or_else(|| root.to_owned());
    let groups = leaf.ancestors().take_while(|group| group.starts_with(root));
    let limits = groups.filter_map(|group| parse(&fs::read_to_string(group.join(file)).ok()?));
    limits.min()
}

/// Parses a limit. Returns `None` for `max`, and for numbers near 2⁶³, with which version 1 means no limit.
fn parse(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    #[test]
    fn limits_table() {
        for (finding, status) in [
            (file_size(RLIM_INFINITY), Status::Ok),
            (file_size(0), Status::Fail),
            (file_size((256 << 10) - 1), Status::Fail),
            (file_size(1 << 30), Status::Warn),
            (files(1024), Status::Ok),
            (files(16), Status::Warn),
            (address_space(1 << 20), Status::Warn),
            (address_space(RLIM_INFINITY), Status::Ok),
            (memory(None), Status::Ok),
            (memory(Some(1 << 20)), Status::Warn),
            (memory(Some(1 << 40)), Status::Ok),
        ] {
            assert_eq!(finding.status, status, "{finding}");
        }
    }

    #[test]
    fn the_least_limit_above_counts() {
        let root = tempfile::tempdir().unwrap();
        let leaf = root.path().join("a/b");
        fs::create_dir_all(&leaf).unwrap();
        fs::write(leaf.join("memory.max"), "max\n").unwrap();
        assert_eq!(least_above(root.path(), "a/b", "memory.max"), None);
        fs::write(root.path().join("a/memory.max"), "4096\n").unwrap();
        fs::write(root.path().join("memory.max"), "9223372036854771712\n").unwrap();
        assert_eq!(least_above(root.path(), "a/b", "memory.max"), Some(4096));
        assert_eq!(least_above(root.path(), "not/here", "memory.max"), None);
    }
}
