//! Effects of the environment on a host: the modes of files, and where a warning goes.

use crate::host;
use e2e::host_support::{Found, scratch};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn mode(path: &Path) -> u32 {
    let metadata = fs::symlink_metadata(path);
    metadata.unwrap().permissions().mode() & 0o7777
}

/// Runs a host that dies, so that its ring is still there, and gives the modes of directory, folder, run file, fragment and ring.
fn modes(umask: &str, asked: &str) -> [u32; 5] {
    let outer = scratch();
    let dir = outer.path().join("run-directory");
    let host = host(&dir, &["--umask", umask, "killed", "work", "10"]);
    let pid = host
        .variable("SA_PROFILE_MODE", asked)
        .run()
        .was_killed()
        .pid;
    let folder = dir.join("fragments");
    let names = [format!("trace.{pid}.jsonl"), format!("trace.{pid}.ring")];
    [
        mode(&dir),
        mode(&folder),
        mode(&dir.join("run")),
        mode(&folder.join(&names[0])),
        mode(&folder.join(&names[1])),
    ]
}

#[test]
fn files_are_private_unless_a_group_is_let_in() {
    assert_eq!(modes("000", ""), [0o700, 0o700, 0o600, 0o600, 0o600]);
    for umask in ["000", "077"] {
        let shared = [0o750, 0o750, 0o640, 0o640, 0o640];
        assert_eq!(modes(umask, "0640"), shared, "{umask}");
    }
}

#[test]
fn folders_keep_the_group_that_their_parent_shares() {
    let outer = scratch();
    let shared = outer.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)).unwrap();
    let dir = shared.join("new/run-directory");
    let host = host(&dir, &["--umask", "077", "spans", "work", "10"]);
    let _outcome = host.variable("SA_PROFILE_MODE", "0640").run().quiet();
    for folder in [shared.join("new"), dir.clone(), dir.join("fragments")] {
        assert_eq!(mode(&folder), 0o2750, "{}", folder.display());
    }
}

/// A host that has something to say on a stderr of the test's own.
fn warned(stderr: impl Into<std::process::Stdio>) {
    let dir = scratch();
    let outcome = host(dir.path(), &["--deadly-pipes", "spans", "work", "10"])
        .variable("SA_PROFILE_LEVEL", "e2e,bogus")
        .stderr(stderr)
        .deadline(Duration::from_secs(20))
        .run();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    Found::in_dir(dir.path()).assert_exactly(&[("work", 10)]);
}

#[test]
fn a_warning_neither_waits_for_a_stderr_that_is_full_nor_dies_of_a_closed_one() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    warned(writer);
    let (_reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b'-'; 64 << 10]).unwrap(); // what a pipe holds
    warned(writer);
}
