//! File systems a run directory may lie on: what can hold a ring keeps everything through a kill, what cannot still records, and the fragment says which.

use crate::{HOST, listening_script};
use e2e::host_support::{Found, Host, Merged, Mount, namespaces, ring_files, scratch, undisturbed};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Prepares a host that records 3000 spans and is killed with the last of them in the ring alone.
fn kill_in(dir: &Path, host: Host) {
    let host = host.arguments(&["killed", "work", "3000"]);
    let _killed = host.recorded_in(dir).run().was_killed();
}

/// Asserts that all 3000 spans of a killed host are there, by the second reader and by the merge.
fn assert_whole(dir: &Path) {
    assert_eq!(ring_files(dir).len(), 1, "the ring of a killed process");
    let found = Found::in_dir(dir);
    assert_eq!(found.header_values("ring"), [r#""file""#]);
    found.assert_exactly(&[("work", 3000)]);
    found.assert_merged(&Merged::newest(dir));
}

#[test]
fn tmpfs_keeps_everything_through_a_kill() {
    let test = "tmpfs_keeps_everything_through_a_kill";
    let at = scratch();
    let Some(_mount) = Mount::tmpfs(test, "size=64m", at.path()) else {
        return;
    };
    let dir = at.path().join("run");
    kill_in(&dir, Host::new(HOST));
    assert_whole(&dir);
}

/// A container's own root: an overlay, here one of an ordinary user's.
#[test]
fn an_overlay_in_a_user_namespace_keeps_everything_through_a_kill() {
    let test = "an_overlay_in_a_user_namespace_keeps_everything_through_a_kill";
    let at = scratch();
    for folder in ["lower", "upper", "work", "root"] {
        fs::create_dir(at.path().join(folder)).unwrap();
    }
    let mount = format!(
        r#"cd '{}' && mount -t overlay overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work root && exec "$0" "$@""#,
        at.path().display()
    );
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let wrapper = [&unshare[..], &["sh", "-c", &mount]].concat();
    if !namespaces(test, &wrapper[1..]) {
        return;
    }
    kill_in(&at.path().join("root/run"), Host::below(&wrapper, HOST));
    // The overlay went with the namespace; what was written through it lies in its upper folder.
    assert_whole(&at.path().join("upper/run"));
}

/// The type of an overlay does not reveal that the file system below it cannot reserve blocks.
#[test]
fn a_file_system_that_cannot_hold_a_ring_gets_one_in_memory() {
    let test = "a_file_system_that_cannot_hold_a_ring_gets_one_in_memory";
    let (below, at) = (scratch(), scratch());
    let Some(_below) = Mount::ramfs(test, below.path()) else {
        return;
    };
    for folder in ["lower", "upper", "work"] {
        fs::create_dir(below.path().join(folder)).unwrap();
    }
    let Some(_mount) = Mount::overlay(test, below.path(), at.path()) else {
        return;
    };
    for place in [below.path(), at.path()] {
        let dir = place.join("run");
        let _outcome = undisturbed(HOST, &dir, &["threads", "8", "500"]).quiet();
        let found = Found::in_dir(&dir);
        assert_eq!(found.header_values("ring"), [r#""heap""#]);
        assert_eq!(found.recorded(), 4000);
        found.assert_accounted(4000);
        found.assert_merged(&Merged::newest(&dir));
        assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_was_flushed_outlives_a_kill_without_a_ring_file() {
    let test = "what_was_flushed_outlives_a_kill_without_a_ring_file";
    let at = scratch();
    let Some(_mount) = Mount::ramfs(test, at.path()) else {
        return;
    };
    let dir = at.path().join("run");
    let mut host = listening_script(&dir);
    host.ask("spans work 500");
    let start = Instant::now();
    while Found::in_dir(&dir).recorded() < 500 {
        assert!(start.elapsed() < DEADLINE, "the helper flushes by itself");
        thread::sleep(Duration::from_millis(20));
    }
    host.kill();
    let found = Found::in_dir(&dir);
    assert_eq!(found.header_values("ring"), [r#""heap""#]);
    found.assert_exactly(&[("work", 500)]);
    found.assert_merged(&Merged::newest(&dir));
}

/// A sandbox that lets a process share no memory leaves nothing to record with.
#[test]
fn where_no_map_can_be_shared_the_host_goes_on_unrecorded() {
    let dir = scratch();
    let arguments = ["--no-shared-maps", "spans", "work", "500"];
    let outcome = undisturbed(HOST, dir.path(), &arguments);
    let line = outcome.one_line();
    assert!(line.starts_with("sa-profile: "), "{line}");
    let left: Vec<_> = fs::read_dir(dir.path().join("fragments"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
