//! File systems for run directories. If a file system can hold a ring, everything survives a kill. Otherwise recording works without a ring file, and the
//! fragment says so.

use crate::{HOST, listening_script};
use e2e::host_support::{
    Host, HostRecording, Merged, Mount, make_folder, ring_files, scratch, undisturbed, works,
};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Deadline for anything in these tests. Only a hang takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// Records on an overlay like a container's root. The overlay belongs to an ordinary user here.
#[test]
fn an_overlay_in_a_user_namespace_keeps_everything_through_a_kill() {
    let at = scratch();
    for folder in ["lower", "upper", "work", "root"] {
        make_folder(&at.path().join(folder), 0o755);
    }
    let mount = format!(
        r#"cd '{}' && mount -t overlay overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work root && exec "$0" "$@""#,
        at.path().display()
    );
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let wrapper = [&unshare[..], &["sh", "-c", &mount]].concat();
    if !works(&[&unshare[..], &["true"]].concat()) {
        return;
    }
    let host = Host::below(&wrapper, HOST).arguments(&["killed", "work", "3000"]);
    let host = host.recorded_in(&at.path().join("root/run"));
    let _killed = host.run().was_killed();
    // The overlay disappears with its namespace. The files are in its upper folder.
    let dir = at.path().join("upper/run");
    assert_eq!(ring_files(&dir).len(), 1, "the ring of a killed process");
    let found = HostRecording::in_dir(&dir);
    assert_eq!(found.header_values("ring"), [r#""file""#]);
    found.assert_exactly(&[("work", 3000)]);
    found.assert_merged(&Merged::newest(&dir));
}

/// The type of an overlay does not reveal that the underlying file system cannot reserve blocks. Even there, flushed spans outlive a kill.
#[test]
fn a_file_system_that_cannot_hold_a_ring_gets_one_in_memory() {
    let (below, at) = (scratch(), scratch());
    let Some(_below) = Mount::ramfs(below.path()) else {
        return;
    };
    for folder in ["lower", "upper", "work"] {
        make_folder(&below.path().join(folder), 0o755);
    }
    let Some(_mount) = Mount::overlay(below.path(), at.path()) else {
        return;
    };
    for place in [below.path(), at.path()] {
        let dir = place.join("run");
        let _outcome = undisturbed(HOST, &dir, &["threads", "8", "500"]).quiet();
        let found = HostRecording::accounted(&dir, 4000);
        assert_eq!(found.header_values("ring"), [r#""heap""#]);
        assert_eq!(found.recorded(), 4000);
        assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());

        let dir = place.join("killed");
        let mut host = listening_script(&dir);
        host.ask("spans work 500");
        let start = Instant::now();
        while HostRecording::in_dir(&dir).recorded() < 500 {
            assert!(
                start.elapsed() < DEADLINE,
                "the recorder's thread flushes by itself"
            );
            thread::sleep(Duration::from_millis(20));
        }
        host.kill();
        let found = HostRecording::in_dir(&dir);
        assert_eq!(found.header_values("ring"), [r#""heap""#]);
        found.assert_exactly(&[("work", 500)]);
        found.assert_merged(&Merged::newest(&dir));
    }
}
