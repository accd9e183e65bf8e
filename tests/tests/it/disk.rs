//! Full disks and unusable directories: the host continues as before, losses are counted, and there is at most one line on stderr.

use crate::{HOST, NOBODY, script};
use e2e::host_support::{
    Host, HostRecording, Live, Merged, Mount, assert_accounted_or_off, assert_undisturbed, is_root,
    make_folder, public_copy, ring_files, scratch, undisturbed,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Fills a file system until writes fail, then leaves about `free_bytes` free.
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

/// Records on 4 MiB until long after the disk is full. The report shows the loss, both on the full disk and after it was enlarged so that the run can be settled.
#[test]
fn issue_19_a_full_disk_is_reported_to_the_event_however_the_host_ends() {
    const DID: u64 = 60_000;
    let endings: [fn(Live); 3] = [
        |host| {
            host.kill();
        },
        |host| drop(host.terminate()),
        |host| drop(host.end().unharmed()),
    ];
    for end in endings {
        let at = scratch();
        let Some(mount) = Mount::tmpfs("size=4m", at.path()) else {
            return;
        };
        let dir = at.path().join("run");
        let mut host = script(&dir);
        host.ask("spans work 30000, spans late 30000");
        end(host);
        for size in ["size=4m", "size=64m"] {
            mount.remount(size);
            let found = HostRecording::in_dir(&dir);
            found.assert_accounted(DID);
            let (lost, recorded) = (found.lost, found.recorded());
            assert!(lost > DID / 3 && recorded > 10_000, "{lost} {recorded}");
            let merged = Merged::newest(&dir);
            found.assert_merged(&merged);
            let words = merged.words();
            let mut sentences = words.lines();
            let sentence = sentences.find(|line| line.contains("the disk was full"));
            let sentence = sentence.unwrap_or_else(|| panic!("{words}"));
            for part in [" of host's events between ", " are missing ("] {
                assert!(sentence.contains(part), "{sentence}");
            }
        }
        assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());
        HostRecording::in_dir(&dir).assert_accounted(DID);
    }
}

#[test]
fn recording_resumes_when_a_full_disk_has_space_and_every_loss_is_reported() {
    let at = scratch();
    let Some(_mount) = Mount::tmpfs("size=16m", at.path()) else {
        return;
    };
    let dir = at.path().join("run");
    let mut host = script(&dir);
    host.ask("spans early 1000, flush");
    let filler = fill(at.path(), 0);
    // There are enough loss records to fill the process's own slot.
    for round in 0..500 {
        host.ask(&format!("spans full-{round} 1000, flush"));
    }
    fs::remove_file(filler).unwrap();
    // The recorder may wait for a second before it tries again.
    std::thread::sleep(Duration::from_millis(2500));
    host.ask("spans late 1000");
    let _outcome = host.end().unharmed();
    let found = HostRecording::accounted(&dir, 502_000);
    assert!(found.lost > 400_000, "only {} are reported", found.lost);
    let counts = found.counts();
    assert_eq!((counts["early"], counts["late"]), (1000, 1000));
    assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());
}

#[test]
fn a_disk_that_is_full_or_without_inodes_at_the_start_leaves_the_host_alone() {
    let full = [0, 4096, 64 << 10, 384 << 10, 1 << 20].map(|free_bytes| (Some(free_bytes), 0));
    for (free_bytes, inodes) in full.into_iter().chain((1..8).map(|inodes| (None, inodes))) {
        let at = scratch();
        let options = format!("size=8m,nr_inodes={inodes}");
        let Some(_mount) = Mount::tmpfs(&options, at.path()) else {
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
    if !is_root() {
        return;
    }
    let (place, program) = public_copy(HOST);
    for mode in [0o755, 0o700] {
        let dir = place.path().join(format!("run-{mode:o}"));
        make_folder(&dir, mode);
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
    make_folder(&read_only, 0o755);
    let mount = Mount::tmpfs("size=8m", &read_only);
    if let Some(mount) = &mount {
        mount.remount("ro");
    }
    // The line names the path if that is short and belongs to the test.
    let named = [Some(&file), mount.as_ref().map(|_| &read_only)];
    let named: Vec<&PathBuf> = named.into_iter().flatten().collect();
    let paths = named.iter().map(|path| path.join("below"));
    for dir in paths.chain([file.clone(), long]).chain(nowhere) {
        let outcome = undisturbed(HOST, &dir, &["spans", "work", "1000"]);
        let line = outcome.one_line();
        let mut above = named.iter().filter(|path| dir.starts_with(path));
        let is_named = above.all(|path| line.contains(&path.display().to_string()));
        assert!(is_named, "{line}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }
}
