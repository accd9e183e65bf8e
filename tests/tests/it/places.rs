//! File systems a run directory may lie on: what can hold a ring keeps everything through a kill, what cannot still records, and the fragment says which.

use crate::{HOST, listening_script};
use e2e::host_support::{Found, Host, Merged, Mount, namespaces, ring_files, scratch, undisturbed};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Nothing takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

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
    let host = Host::below(&wrapper, HOST).arguments(&["killed", "work", "3000"]);
    let host = host.recorded_in(&at.path().join("root/run"));
    let _killed = host.run().was_killed();
    // The overlay went with the namespace; what was written through it lies in its upper folder.
    let dir = at.path().join("upper/run");
    assert_eq!(ring_files(&dir).len(), 1, "the ring of a killed process");
    let found = Found::in_dir(&dir);
    assert_eq!(found.header_values("ring"), [r#""file""#]);
    found.assert_exactly(&[("work", 3000)]);
    found.assert_merged(&Merged::newest(&dir));
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
        let found = Found::accounted(&dir, 4000);
        assert_eq!(found.header_values("ring"), [r#""heap""#]);
        assert_eq!(found.recorded(), 4000);
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
