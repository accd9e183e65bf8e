//! Checks if the run directory can be written, and what the file system under it supports.

use super::finding::{Check, Finding};
use crate::run::directory::problem;
use crate::words::amount::size;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const DIRECTORY: Check = Check("directory");
const FILE_SYSTEM: Check = Check("file system");
const FALLOCATE: Check = Check("fallocate");
const DISK: Check = Check("disk");

/// Minimum free space. With less, nothing useful can be recorded.
const LEAST_BYTES: u64 = 1 << 20;
/// Size of a new ring.
const RING_BYTES: i64 = 256 << 10;
/// File systems on another machine or in another process.
const REMOTE: [&str; 11] = [
    "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "9p", "virtiofs", "beegfs", "gpfs", "afs",
];

/// Checks the directory, in which each process may use `bound` bytes. If it does not exist, checks the folder in which it would be created.
pub(crate) fn examine(directory: &Path, bound: u64) -> Vec<Finding> {
    let shown = directory.display();
    let place = existing(directory);
    if let Some(problem) = problem(&place) {
        let found = format!("{}: {problem}", place.display());
        return vec![refused(found)];
    }
    let file = match tempfile::tempfile_in(&place) {
        Ok(file) => file,
        Err(error) => {
            let found = format!("{}: no file can be created: {error}", place.display());
            return vec![refused(found)];
        }
    };
    let state = if place == directory {
        "exists and can be written"
    } else {
        "does not exist yet and can be created"
    };
    let mut findings = vec![DIRECTORY.ok(format!("{shown} {state}"))];
    findings.push(file_system(&place, &file));
    findings.push(allocation(&file));
    findings.push(space(&place, bound));
    findings
}

fn refused(found: String) -> Finding {
    DIRECTORY.fail(
        found,
        "name another one in SA_PROFILE_DIR or sa-profile run --dir",
    )
}

/// Returns the directory, or its nearest parent that exists.
fn existing(directory: &Path) -> PathBuf {
    let there = directory
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    there.unwrap_or(Path::new(".")).to_owned()
}

fn file_system(place: &Path, file: &File) -> Finding {
    let kind = kind(place).unwrap_or_else(|| "of an unknown kind".to_owned());
    let is_remote = REMOTE.contains(&kind.as_str()) || kind.starts_with("fuse");
    if is_remote {
        return FILE_SYSTEM.warn(format!("{kind}: remote"),
            "events that were not yet written when a process is killed are lost, and writing is as slow as the server: use a local disk",
        );
    }
    if !sa_recorder::holds_rings(file) {
        return FILE_SYSTEM.warn(format!("{kind}: shared maps may run out of space"),
            "events of at most the last quarter of a second are lost when a process is killed: ext4, xfs and tmpfs keep them",
        );
    }
    FILE_SYSTEM.ok(format!(
        "{kind}: supports shared maps, so a kill loses nothing"
    ))
}

/// Returns the type of the file system that contains a path, as the mount table names it.
fn kind(place: &Path) -> Option<String> {
    let place = fs::canonicalize(place).ok()?;
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_in(&table, &place)
}

/// Returns the type from a mount table. The deepest mount that contains the path counts, and of several at the same place the last one.
fn kind_in(table: &str, place: &Path) -> Option<String> {
    let mounts = table.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        place
            .starts_with(&point)
            .then_some((point.len(), source.split(' ').next()?))
    });
    mounts
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind.to_owned())
}

fn allocation(file: &File) -> Finding {
    // If a write exceeds the limit, the kernel sends a signal that would end this process.
    let limit = getrlimit(Resource::RLIMIT_FSIZE).map_or(RLIM_INFINITY, |(soft, _)| soft);
    if limit < RING_BYTES.unsigned_abs() {
        return FALLOCATE.fail(
            "not tried: the file size is limited",
            "raise it: ulimit -f unlimited",
        );
    }
    match fallocate(file, FallocateFlags::empty(), 0, RING_BYTES) {
        Ok(()) => FALLOCATE.ok("disk blocks can be reserved"),
        Err(Errno::ENOSPC | Errno::EDQUOT) => {
            FALLOCATE.fail("refused: the disk or the quota is full", "make room")
        }
        Err(error) => FALLOCATE.warn(
            format!("refused: {}", error.desc()),
            "a ring cannot be in a file here, so a kill loses events that were not yet written",
        ),
    }
}

fn space(place: &Path, bound: u64) -> Finding {
    let Ok(disk) = statvfs(place) else {
        return DISK.warn(
            "its free space cannot be read",
            "make sure that there is some",
        );
    };
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    judge_space(free, bound)
}

fn judge_space(free: u64, bound: u64) -> Finding {
    let found = format!(
        "{} free, each process takes {} at most",
        size(free),
        size(bound)
    );
    if free < LEAST_BYTES {
        return DISK.fail(found, "make room: nothing can be recorded");
    }
    if free < bound {
        let advice = "make room, or set SA_PROFILE_MAX_MB lower: at the bound the oldest events go, on a full disk the newest";
        return DISK.warn(found, advice);
    }
    DISK.ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_holds_the_path() {
        let table = "\
            1 0 8:1 / / rw - ext4 /dev/sda rw\n\
            2 1 0:5 / /mnt/a\\040b rw shared:7 - nfs4 server:/x rw\n\
            3 1 0:6 / /mnt rw - xfs /dev/sdb rw\n\
            4 1 0:7 / /mnt rw - tmpfs none rw\n";
        for (path, kind) in [
            ("/home", "ext4"),
            ("/mnt/a b/c", "nfs4"),
            ("/mnt/a", "tmpfs"),
            ("/mntx", "ext4"),
        ] {
            assert_eq!(
                kind_in(table, Path::new(path)).as_deref(),
                Some(kind),
                "{path}"
            );
        }
        assert_eq!(kind_in("", Path::new("/")), None);
    }

    #[test]
    fn a_disk_smaller_than_the_bound_is_warned_about() {
        for (free, expected) in [
            (1_000_000, "FAIL  disk            1.0 MB free, each"),
            (64_000_000, "warn  disk            64.0 MB free, each"),
            (
                65_000_000,
                "ok    disk            65.0 MB free, each process takes 64.0 MB at most",
            ),
        ] {
            let found = judge_space(free, 64_000_001).to_string();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
