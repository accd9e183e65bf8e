//! What a test needs from the machine: rights, commands, file systems, folders.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Prints that the current test is skipped and why.
#[expect(clippy::print_stderr, reason = "a skipped test must be noticed")]
pub fn skip(why: &str) {
    let thread = std::thread::current();
    eprintln!("SKIPPED {}: {why}", thread.name().unwrap_or_default());
}

/// Returns true if `SA_PROFILE_FULL=1` requests the long versions of the tests.
pub fn full() -> bool {
    std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1")
}

/// Returns true if the test runs as root, and reports it as skipped otherwise.
pub fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        skip("needs root");
    }
    root
}

/// Returns true if a command succeeds, and reports the test as skipped otherwise.
pub fn works(command: &[&str]) -> bool {
    let mut process = Command::new(command[0]);
    let process = process.args(&command[1..]).stderr(Stdio::null());
    let works = process.status().is_ok_and(|status| status.success());
    if !works {
        skip(&format!("{} does not work here", command.join(" ")));
    }
    works
}

/// A file system mounted for one test.
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts a tmpfs with `options` at `at`. Returns `None` and reports the test as skipped if that is not permitted.
    pub fn tmpfs(options: &str, at: &Path) -> Option<Mount> {
        Mount::new("tmpfs", options, at)
    }

    /// Mounts a ramfs, which is a file system that the recorder does not recognize.
    pub fn ramfs(at: &Path) -> Option<Mount> {
        Mount::new("ramfs", "mode=0755", at)
    }

    /// Mounts an overlay of the folders `lower`, `upper` and `work` in `below`.
    pub fn overlay(below: &Path, at: &Path) -> Option<Mount> {
        let below = below.display();
        let options = format!("lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work");
        Mount::new("overlay", &options, at)
    }

    fn new(kind: &str, options: &str, at: &Path) -> Option<Mount> {
        let path = at.display().to_string();
        let is_mounted = works(&["mount", "-t", kind, "-o", options, kind, &path]);
        is_mounted.then(|| Mount { at: at.to_owned() })
    }

    /// Changes the mount options, for example to `ro` or `rw`.
    pub fn remount(&self, options: &str) {
        let (options, at) = (format!("remount,{options}"), self.at.display().to_string());
        assert!(works(&["mount", "-o", &options, &at]), "our own mount");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        works(&["umount", "--lazy", &self.at.display().to_string()]);
    }
}

/// Returns all files below a directory that have this extension, sorted.
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

/// Returns all ring files below a directory.
pub fn ring_files(dir: &Path) -> Vec<PathBuf> {
    files(dir, "ring")
}

/// Returns the segments of the newest run in a directory.
pub fn segments(dir: &Path) -> Vec<PathBuf> {
    files(&dir.join("fragments"), "jsonl")
}

/// Returns the total length of the segments of the newest run in a directory.
pub fn segment_bytes(dir: &Path) -> u64 {
    let metadata = |path: PathBuf| fs::metadata(path).ok();
    let found = segments(dir).into_iter().filter_map(metadata);
    found.map(|metadata| metadata.len()).sum()
}

/// Returns the disk space that a segment occupies, or `None` if it is gone.
pub fn disk_space(segment: &Path) -> Option<u64> {
    let metadata = fs::metadata(segment).ok()?;
    Some(metadata.len().max(metadata.blocks() * 512))
}

/// Returns a size in KiB from a process's status, or 0 if the process is gone.
pub fn status_kib(pid: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Creates a folder with these permissions, whatever the umask.
pub fn make_folder(path: &Path, mode: u32) {
    fs::create_dir_all(path).expect("a new directory");
    set_mode(path, mode);
}

/// Sets the permissions of a file or folder.
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
}

/// Returns the permissions of a file or folder.
pub fn mode(path: &Path) -> u32 {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    metadata.mode() & 0o7777
}

/// Creates a directory for one test.
pub fn scratch() -> TempDir {
    tempfile::tempdir().expect("a scratch directory")
}

/// Copies a program to a place where any user can run it.
pub fn public_copy(program: &str) -> (TempDir, PathBuf) {
    let dir = scratch();
    set_mode(dir.path(), 0o755);
    let copy = dir.path().join("program");
    fs::copy(program, &copy).expect("the program can be copied");
    (dir, copy)
}

/// Returns the path of a library that cargo built next to the test, because the test package depends on it.
pub fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let library = test.with_file_name(name);
    assert!(library.exists(), "{} is built", library.display());
    library
}
