//! The modes of a recording's files, whatever the umask of its host.

use crate::host;
use e2e::host_support::scratch;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
    let shared = [0o750, 0o750, 0o640, 0o640, 0o640];
    for (umask, asked, expected) in [
        ("000", "", [0o700, 0o700, 0o600, 0o600, 0o600]),
        ("000", "0640", shared),
        ("077", "0640", shared),
    ] {
        assert_eq!(modes(umask, asked), expected, "{umask} {asked}");
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
