//! What the machine must offer for a test, and the file systems that tests bring along.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Says loudly that a test did not run.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

/// Tells whether the long versions of the tests were asked for (`SA_PROFILE_FULL=1`).
pub fn full() -> bool {
    std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1")
}

/// Tells whether the test runs as root; else says that it is skipped.
pub fn is_root(test: &str) -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Tells whether `unshare` with these options works here; else says that the test is skipped.
pub fn namespaces(test: &str, options: &[&str]) -> bool {
    let works = Command::new("unshare")
        .args(options)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skip(
            test,
            &format!("unshare {} does not work here", options.join(" ")),
        );
    }
    works
}

/// A file system mounted for one test.
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts a tmpfs with `options` on `at`; `None` where that is not allowed, and says that the test is skipped.
    pub fn tmpfs(test: &str, options: &str, at: &Path) -> Option<Mount> {
        Mount::new(test, "tmpfs", options, at)
    }

    /// Mounts a ramfs, a file system that the recorder does not know.
    pub fn ramfs(test: &str, at: &Path) -> Option<Mount> {
        Mount::new(test, "ramfs", "mode=0755", at)
    }

    /// Mounts an overlay of the folders `lower`, `upper` and `work` in `below`.
    pub fn overlay(test: &str, below: &Path, at: &Path) -> Option<Mount> {
        let below = below.display();
        let options = format!("lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work");
        Mount::new(test, "overlay", &options, at)
    }

    fn new(test: &str, kind: &str, options: &str, at: &Path) -> Option<Mount> {
        let mount = Mount { at: at.to_owned() };
        let mounted = Command::new("mount")
            .args(["-t", kind, "-o", options, kind])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(mount);
        }
        std::mem::drop(mount);
        skip(test, &format!("mounting a {kind} does not work here"));
        None
    }

    /// Makes it read-only or writable.
    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let status = Command::new("mount")
            .args(["-o", &options])
            .arg(&self.at)
            .status()
            .expect("mount starts");
        assert!(status.success(), "the test's own mount can be changed");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _not_mounted = Command::new("umount")
            .arg("--lazy")
            .arg(&self.at)
            .stderr(Stdio::null())
            .status();
    }
}

/// All files below a directory whose names end so, sorted.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// All ring files below a directory.
pub fn ring_files(dir: &Path) -> Vec<PathBuf> {
    files(dir, "ring")
}

/// The segments of the newest run of a directory.
pub fn segments(dir: &Path) -> Vec<PathBuf> {
    files(&dir.join("fragments"), "jsonl")
}

/// The length of all segments of the newest run of a directory.
pub fn segment_bytes(dir: &Path) -> u64 {
    let metadata = |path: PathBuf| fs::metadata(path).ok();
    let found = segments(dir).into_iter().filter_map(metadata);
    found.map(|metadata| metadata.len()).sum()
}

/// The space that a segment takes on disk; `None` if it is gone.
pub fn disk_space(segment: &Path) -> Option<u64> {
    let metadata = fs::metadata(segment).ok()?;
    Some(metadata.len().max(metadata.blocks() * 512))
}

/// A directory for one test.
pub fn scratch() -> TempDir {
    tempfile::tempdir().expect("a scratch directory")
}

/// Copies a program to where any user can run it.
pub fn public_copy(program: &str) -> (TempDir, PathBuf) {
    let dir = scratch();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("own directory");
    let copy = dir.path().join("program");
    fs::copy(program, &copy).expect("the program can be copied");
    (dir, copy)
}
