//! Disks and directories that refuse: the host goes on as ever, losses are counted, and at most one line is said.

use crate::{HOST, NOBODY, script};
use e2e::host_support::{
    Found, Host, Live, Merged, Mount, assert_accounted_or_off, assert_undisturbed, is_root,
    public_copy, ring_files, scratch, undisturbed,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Fills a file system until it refuses, and leaves about `free_bytes`.
fn fill(at: &Path, free_bytes: u64) -> PathBuf {
    use std::io::Write;
    let path = at.join("filler");
    let mut filler = fs::File::create(&path).unwrap();
    let mut written: u64 = 0;
    for chunk in [vec![1_u8; 1 << 16], vec![1_u8; 4096]] {
        while filler.write_all(&chunk).is_ok() {
            written += chunk.len() as u64;
        }
    }
    filler.set_len(written.saturating_sub(free_bytes)).unwrap();
    path
}

/// Records on 4 MiB until long after they are full; gives the words of the merge's report.
fn fill_and_end(test: &str, end: fn(Live)) -> Option<String> {
    const DID: u64 = 60_000;
    let at = scratch();
    let mount = Mount::tmpfs(test, "size=4m", at.path())?;
    let dir = at.path().join("run");
    let mut host = script(&dir);
    host.ask("spans work 30000");
    host.ask("spans late 30000");
    end(host);
    // Once as it is left, and once more where the disk has room to settle it.
    let mut words = String::new();
    for has_room in [false, true] {
        let found = Found::in_dir(&dir);
        found.assert_accounted(DID);
        assert!(found.lost > DID / 3, "{} do not fit", found.recorded());
        assert!(
            found.recorded() > 10_000,
            "only {} fitted",
            found.recorded()
        );
        let merged = Merged::newest(&dir);
        found.assert_merged(&merged);
        words = merged.words();
        if !has_room {
            mount.remount("size=64m");
        }
    }
    assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());
    Found::in_dir(&dir).assert_accounted(DID);
    Some(words)
}

#[test]
fn issue_19_a_full_disk_is_told_to_the_event_however_the_host_ends() {
    let test = "issue_19_a_full_disk_is_told_to_the_event_however_the_host_ends";
    let endings: [fn(Live); 3] = [
        |host| {
            host.kill();
        },
        |host| {
            host.terminate();
        },
        |host| {
            let _outcome = host.end().unharmed();
        },
    ];
    for end in endings {
        let Some(words) = fill_and_end(test, end) else {
            return;
        };
        let mut sentences = words.lines();
        let sentence = sentences.find(|line| line.contains("the disk was full"));
        let sentence = sentence.unwrap_or_else(|| panic!("{words}"));
        for part in [" of host's events between ", " are missing ("] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn a_disk_that_is_full_for_long_goes_on_recording_when_it_has_space_and_tells_every_loss() {
    let at = scratch();
    let test = "a_disk_that_is_full_for_long_goes_on_recording_when_it_has_space";
    let Some(_mount) = Mount::tmpfs(test, "size=16m", at.path()) else {
        return;
    };
    let dir = at.path().join("run");
    let mut host = script(&dir);
    host.ask("spans early 1000");
    host.ask("flush");
    let filler = fill(at.path(), 0);
    // As many records of losses as would fill the process's own slot.
    for round in 0..500 {
        host.ask(&format!("spans full-{round} 1000"));
        host.ask("flush");
    }
    fs::remove_file(filler).unwrap();
    // The recorder may wait a second before it tries again.
    std::thread::sleep(Duration::from_millis(2500));
    host.ask("spans late 1000");
    let _outcome = host.end().unharmed();
    let found = Found::accounted(&dir, 502_000);
    assert!(found.lost > 400_000, "only {} are told", found.lost);
    let counts = found.counts();
    assert_eq!((counts["early"], counts["late"]), (1000, 1000));
    assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());
}

#[test]
fn a_disk_that_is_full_or_without_inodes_at_the_start_leaves_the_host_alone() {
    let test = "a_disk_that_is_full_or_without_inodes_at_the_start_leaves_the_host_alone";
    let full = [0, 4096, 64 << 10, 384 << 10, 1 << 20].map(|free_bytes| (Some(free_bytes), 0));
    for (free_bytes, inodes) in full.into_iter().chain((1..8).map(|inodes| (None, inodes))) {
        let at = scratch();
        let options = format!("size=8m,nr_inodes={inodes}");
        let Some(_mount) = Mount::tmpfs(test, &options, at.path()) else {
            return;
        };
        if let Some(free_bytes) = free_bytes {
            fill(at.path(), free_bytes);
        }
        let dir = at.path().join("run");
        let outcome = undisturbed(HOST, &dir, &["spans", "work", "20000"]);
        assert_accounted_or_off(&dir, &outcome, 20_000);
    }
}

#[test]
fn a_directory_of_another_user_costs_one_line() {
    if !is_root("a_directory_of_another_user_costs_one_line") {
        return;
    }
    let (place, program) = public_copy(HOST);
    for mode in [0o755, 0o700] {
        let dir = place.path().join(format!("run-{mode:o}"));
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        let arguments = ["spans", "work", "1000"];
        let host = || Host::new(&program).arguments(&arguments).user(NOBODY);
        let recorded = host().recorded_in(&dir).run();
        assert_undisturbed(&recorded, &host().run());
        let line = recorded.one_line();
        assert!(line.contains(&dir.display().to_string()), "{line}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
}

#[test]
fn an_unusable_path_or_a_read_only_file_system_costs_one_line() {
    let at = scratch();
    let file = at.path().join("file");
    fs::write(&file, "precious").unwrap();
    let long = PathBuf::from("x".repeat(5000));
    let nowhere = ["/proc/nothing/here", "/dev/null"].map(PathBuf::from);
    let read_only = at.path().join("read-only");
    fs::create_dir(&read_only).unwrap();
    let mount = Mount::tmpfs("a_read_only_file_system", "size=8m", &read_only);
    if let Some(mount) = &mount {
        mount.remount("ro");
    }
    let read_only = mount.iter().map(|_| read_only.join("run"));
    let paths = [file.clone(), file.join("below"), long].into_iter();
    for dir in paths.chain(nowhere).chain(read_only.clone()) {
        let outcome = undisturbed(HOST, &dir, &["spans", "work", "1000"]);
        let line = outcome.one_line();
        let named = read_only.clone().chain([file.clone()]);
        let mut named = named.filter(|named| dir.starts_with(named));
        assert!(
            named.all(|named| line.contains(&named.display().to_string())),
            "{line}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }
}

#[test]
fn a_ring_removed_while_recording_costs_nothing_and_a_removed_fragment_is_made_again_and_told() {
    for (suffix, most_lost) in [("ring", 0), ("jsonl", 100)] {
        let at = scratch();
        let mut host = script(at.path());
        host.ask("spans before 100");
        let name = format!("fragments/trace.{}.{suffix}", host.pid());
        fs::remove_file(at.path().join(name)).unwrap();
        host.ask("spans after 5000");
        host.ask("flush");
        host.ask("spans later 5000");
        let _outcome = host.end().unharmed();
        let found = Found::accounted(at.path(), 10_100);
        assert!(found.lost <= most_lost, "only what was removed is lost");
    }
}
