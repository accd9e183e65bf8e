//! File systems a run directory may lie on: what can hold a ring keeps everything through a kill, what cannot still records, and the fragment says which.

use crate::{HOST, listening_script};
use e2e::host_support::{
    Found, Host, Merged, Mount, make_folder, ring_files, scratch, undisturbed, works,
};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Nothing takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// A container's own root: an overlay, here one of an ordinary user's.
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
    // The overlay went with the namespace; what was written through it lies in its upper folder.
    let dir = at.path().join("upper/run");
    assert_eq!(ring_files(&dir).len(), 1, "the ring of a killed process");
    let found = Found::in_dir(&dir);
    assert_eq!(found.header_values("ring"), [r#""file""#]);
    found.assert_exactly(&[("work", 3000)]);
    found.assert_merged(&Merged::newest(&dir));
}

/// The type of an overlay does not reveal that the file system below it cannot reserve blocks. Flushed spans outlive a kill there too.
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
        let found = Found::accounted(&dir, 4000);
        assert_eq!(found.header_values("ring"), [r#""heap""#]);
        assert_eq!(found.recorded(), 4000);
        assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());

        let dir = place.join("killed");
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
}
