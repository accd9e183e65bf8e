//! What the machine must offer for a test, and the file systems that tests bring along.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Says loudly that the test of this thread does not run.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn skip(why: &str) {
    let thread = std::thread::current();
    eprintln!("SKIPPED {}: {why}", thread.name().unwrap_or_default());
}

/// Tells whether the long versions of the tests were asked for (`SA_PROFILE_FULL=1`).
pub fn full() -> bool {
    std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1")
}

/// Tells whether the test runs as root; else says that it is skipped.
pub fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        skip("needs root");
    }
    root
}

/// Tells whether a command works here; else says that the test is skipped.
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
    /// Mounts a tmpfs with `options` on `at`; `None` where that is not allowed, and says that the test is skipped.
    pub fn tmpfs(options: &str, at: &Path) -> Option<Mount> {
        Mount::new("tmpfs", options, at)
    }

    /// Mounts a ramfs, a file system that the recorder does not know.
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

    /// Makes it read-only or writable.
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

/// Returns a size from a process's status; 0 if it is gone.
pub fn status_kib(pid: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Makes a folder with these permissions, whatever the umask.
pub fn make_folder(path: &Path, mode: u32) {
    fs::create_dir_all(path).expect("a new directory");
    set_mode(path, mode);
}

/// Sets the permissions of a file or folder.
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
}

/// The permissions of a file or folder.
pub fn mode(path: &Path) -> u32 {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    metadata.mode() & 0o7777
}

/// A directory for one test.
pub fn scratch() -> TempDir {
    tempfile::tempdir().expect("a scratch directory")
}

/// Copies a program to where any user can run it.
pub fn public_copy(program: &str) -> (TempDir, PathBuf) {
    let dir = scratch();
    set_mode(dir.path(), 0o755);
    let copy = dir.path().join("program");
    fs::copy(program, &copy).expect("the program can be copied");
    (dir, copy)
}

/// A library that cargo builds next to the tests because they depend on its package.
pub fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let library = test.with_file_name(name);
    assert!(library.exists(), "{} is built", library.display());
    library
}
