//! Disks and directories that refuse: the host goes on as ever, losses are counted, and at most one line is said.

use e2e::host_support::{
    Found, Host, Merged, Mount, assert_accounted_or_off, assert_undisturbed, is_root, public_copy,
    ring_files, scratch, undisturbed,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HOST: &str = env!("CARGO_BIN_EXE_host");
/// A user without any rights of its own.
const NOBODY: u32 = 65534;

/// Fills a file system until it refuses, and leaves about `free_bytes`.
fn fill(at: &Path, free_bytes: u64) -> PathBuf {
    let filler = at.join("filler");
    let mut written = 0;
    for chunk in [vec![1_u8; 1 << 16], vec![1_u8; 4096]] {
        while append(&filler, &chunk) {
            written += u64::try_from(chunk.len()).expect("a small chunk");
        }
    }
    let file = fs::OpenOptions::new()
        .write(true)
        .open(&filler)
        .expect("the filler");
    file.set_len(written.saturating_sub(free_bytes))
        .expect("the filler shrinks");
    filler
}

fn append(path: &Path, chunk: &[u8]) -> bool {
    use std::io::Write;
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    file.expect("the filler").write_all(chunk).is_ok()
}

#[test]
fn a_disk_that_fills_up_while_recording_loses_only_what_is_counted() {
    let at = scratch();
    let Some(_mount) = Mount::tmpfs(
        "a_disk_that_fills_up_while_recording_loses_only_what_is_counted",
        "size=8m",
        at.path(),
    ) else {
        return;
    };
    let dir = at.path().join("run");
    let outcome = undisturbed(HOST, &dir, &["spans", "work", "200000"]);
    assert!(outcome.stderr.lines().count() <= 1);
    let found = Found::in_dir(&dir);
    found.assert_accounted(200_000);
    assert!(found.lost > 0, "200,000 spans do not fit into 8 MiB");
    assert!(
        found.recorded() > 20_000,
        "only {} spans fitted into 8 MiB",
        found.recorded()
    );
    let merged = Merged::newest(&dir);
    assert_eq!(
        (merged.spans(), merged.lost()),
        (found.recorded(), found.lost)
    );
    assert!(merged.losses() > 0, "the loss is an event of the trace");
}

/// A way in which a host on a full disk ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Killed,
    Terminated,
    Ended,
}

/// Records on 8 MiB until long after they are full; gives the words of the merge's report.
fn fill_and_end(test: &str, ending: Ending) -> Option<String> {
    const DID: u64 = 140_000;
    let at = scratch();
    let mount = Mount::tmpfs(test, "size=8m", at.path())?;
    let dir = at.path().join("run");
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(&dir)
        .start();
    host.ask("spans work 70000");
    host.ask("spans late 70000");
    match ending {
        Ending::Killed => {
            host.kill();
        }
        Ending::Terminated => {
            host.terminate();
        }
        Ending::Ended => assert!(host.end().stderr.lines().count() <= 1),
    }
    // Once as it is left, and once more where the disk has room to settle it.
    let mut words = String::new();
    for has_room in [false, true] {
        let found = Found::in_dir(&dir);
        found.assert_accounted(DID);
        assert!(found.lost > DID / 3, "{} do not fit", found.recorded());
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
    for ending in [Ending::Killed, Ending::Terminated, Ending::Ended] {
        let Some(words) = fill_and_end(test, ending) else {
            return;
        };
        let sentence = words
            .lines()
            .find(|line| line.contains("the disk was full"));
        let sentence = sentence.unwrap_or_else(|| panic!("{ending:?}: {words}"));
        assert!(
            sentence.contains(" of host's events between ") && sentence.contains(" are missing ("),
            "{ending:?}: {sentence}"
        );
    }
}

#[test]
fn a_full_disk_that_gets_space_again_goes_on_recording_and_tells_the_loss() {
    let at = scratch();
    let test = "a_full_disk_that_gets_space_again_goes_on_recording_and_tells_the_loss";
    let Some(_mount) = Mount::tmpfs(test, "size=16m", at.path()) else {
        return;
    };
    let dir = at.path().join("run");
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(&dir)
        .start();
    host.ask("spans early 1000");
    host.ask("flush");
    let filler = fill(at.path(), 0);
    host.ask("spans full 20000");
    fs::remove_file(filler).expect("the filler");
    // The recorder may wait a second before it tries again.
    std::thread::sleep(Duration::from_millis(2500));
    host.ask("spans late 1000");
    let outcome = host.end();
    assert!(outcome.stderr.lines().count() <= 1, "{outcome:?}");
    let found = Found::in_dir(&dir);
    found.assert_accounted(22_000);
    assert!(found.lost > 0, "20,000 spans were recorded on a full disk");
    let counts = found.counts();
    assert_eq!((counts["early"], counts["late"]), (1000, 1000));
    assert_eq!(ring_files(&dir), Vec::<PathBuf>::new());
}

#[test]
fn a_disk_that_is_full_for_long_tells_every_loss() {
    let at = scratch();
    let test = "a_disk_that_is_full_for_long_tells_every_loss";
    let Some(_mount) = Mount::tmpfs(test, "size=16m", at.path()) else {
        return;
    };
    let dir = at.path().join("run");
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(&dir)
        .start();
    host.ask("spans early 1000");
    host.ask("flush");
    let filler = fill(at.path(), 0);
    // As many records of losses as would fill the process's own slot.
    for round in 0..500 {
        host.ask(&format!("spans full-{round} 1000"));
        host.ask("flush");
    }
    fs::remove_file(filler).expect("the filler");
    std::thread::sleep(Duration::from_millis(2500));
    host.ask("spans late 1000");
    let outcome = host.end();
    assert!(outcome.stderr.lines().count() <= 1, "{outcome:?}");
    let found = Found::in_dir(&dir);
    found.assert_accounted(502_000);
    assert!(found.lost > 400_000, "only {} are told", found.lost);
}

#[test]
fn a_disk_that_is_full_at_the_start_leaves_the_host_alone() {
    for free_bytes in [0, 4096, 16 << 10, 64 << 10, 256 << 10, 384 << 10, 1 << 20] {
        let at = scratch();
        let Some(_mount) = Mount::tmpfs(
            "a_disk_that_is_full_at_the_start_leaves_the_host_alone",
            "size=8m",
            at.path(),
        ) else {
            return;
        };
        fill(at.path(), free_bytes);
        let dir = at.path().join("run");
        let outcome = undisturbed(HOST, &dir, &["spans", "work", "20000"]);
        assert_accounted_or_off(&dir, &outcome, 20_000);
    }
}

#[test]
fn a_disk_without_inodes_leaves_the_host_alone() {
    for inodes in 1..8 {
        let at = scratch();
        let options = format!("size=8m,nr_inodes={inodes}");
        let Some(_mount) = Mount::tmpfs(
            "a_disk_without_inodes_leaves_the_host_alone",
            &options,
            at.path(),
        ) else {
            return;
        };
        let dir = at.path().join("run");
        let outcome = undisturbed(HOST, &dir, &["spans", "work", "5000"]);
        assert_accounted_or_off(&dir, &outcome, 5000);
    }
}

#[test]
fn a_read_only_file_system_costs_one_line() {
    let at = scratch();
    let Some(mount) = Mount::tmpfs(
        "a_read_only_file_system_costs_one_line",
        "size=8m",
        at.path(),
    ) else {
        return;
    };
    let dir = at.path().join("run");
    mount.remount("ro");
    let outcome = undisturbed(HOST, &dir, &["spans", "work", "1000"]);
    assert!(
        outcome.one_line().contains(&dir.display().to_string()),
        "{outcome:?}"
    );
}

#[test]
fn a_directory_of_another_user_costs_one_line() {
    if !is_root("a_directory_of_another_user_costs_one_line") {
        return;
    }
    let (place, program) = public_copy(HOST);
    for mode in [0o755, 0o555, 0o700] {
        let dir = place.path().join(format!("run-{mode:o}"));
        fs::create_dir(&dir).expect("a new directory");
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("own directory");
        let host = || {
            Host::new(&program)
                .arguments(&["spans", "work", "1000"])
                .user(NOBODY)
        };
        let recorded = host().recorded_in(&dir).run();
        assert_undisturbed(&recorded, &host().run());
        assert!(
            recorded.one_line().contains(&dir.display().to_string()),
            "{recorded:?}"
        );
        assert_eq!(fs::read_dir(&dir).expect("the directory").count(), 0);
    }
}

#[test]
fn a_directory_that_is_a_file_costs_one_line_and_stays_as_it_is() {
    let at = scratch();
    let file = at.path().join("file");
    fs::write(&file, "precious").expect("a file");
    for dir in [file.clone(), file.join("below")] {
        let outcome = undisturbed(HOST, &dir, &["spans", "work", "1000"]);
        assert!(
            outcome.one_line().contains(&file.display().to_string()),
            "{outcome:?}"
        );
        assert_eq!(fs::read_to_string(&file).expect("the file"), "precious");
    }
}

#[test]
fn an_unusable_path_costs_one_line() {
    let long = "x".repeat(5000);
    for dir in ["/proc/nothing/here", "/dev/null", long.as_str()] {
        let outcome = undisturbed(HOST, Path::new(dir), &["spans", "work", "1000"]);
        outcome.one_line();
    }
}

#[test]
fn a_directory_removed_while_recording_is_made_again_and_the_loss_told() {
    let at = scratch();
    let dir = at.path().join("run");
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(&dir)
        .start();
    host.ask("spans before 5000");
    host.ask("flush");
    fs::remove_dir_all(&dir).expect("the directory");
    for round in 0..3 {
        host.ask(&format!("spans after-{round} 5000"));
        host.ask("flush");
        std::thread::sleep(Duration::from_millis(400));
    }
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert!(outcome.stderr.lines().count() <= 1, "{outcome:?}");
    let found = Found::in_dir(&dir);
    found.assert_accounted(20_000);
    assert_eq!(found.lost, 5000, "what was in the removed fragment");
    found.assert_merged(&Merged::newest(&dir));
}

/// Lets a host record 100 spans, removes its file, and lets it record 10,000 more.
fn with_removed(suffix: &str, dir: &Path) -> Found {
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(dir)
        .start();
    host.ask("spans before 100");
    let name = format!("fragments/trace.{}.{suffix}", host.pid());
    fs::remove_file(dir.join(name)).expect("the recorder's file");
    host.ask("spans after 5000");
    host.ask("flush");
    host.ask("spans later 5000");
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert!(outcome.stderr.lines().count() <= 1, "{outcome:?}");
    Found::in_dir(dir)
}

#[test]
fn a_large_removed_fragment_is_counted_in_little_memory() {
    let at = scratch();
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(at.path())
        .start();
    host.ask("spans before 600000");
    host.ask("flush");
    for file in fs::read_dir(at.path().join("fragments")).expect("the segments") {
        let path = file.expect("a segment").path();
        if path.extension() == Some("jsonl".as_ref()) {
            fs::remove_file(path).expect("the segment");
        }
    }
    host.ask("spans after 10");
    host.ask("flush");
    std::thread::sleep(Duration::from_millis(1500));
    let peak_kib: u64 = host.ask("peak-kib").parse().expect("a size");
    assert!(peak_kib < 32 << 10, "{peak_kib} KiB");
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    let found = Found::in_dir(at.path());
    assert_eq!((found.recorded(), found.lost), (10, 600_000));
}

#[test]
fn a_ring_removed_while_recording_costs_nothing_when_the_host_ends_well() {
    let at = scratch();
    with_removed("ring", at.path()).assert_exactly(&[
        ("after", 5000),
        ("before", 100),
        ("later", 5000),
    ]);
}

#[test]
fn a_fragment_removed_while_recording_is_made_again_and_the_loss_told() {
    let at = scratch();
    let found = with_removed("jsonl", at.path());
    found.assert_accounted(10_100);
    assert!(found.lost <= 100, "only what was removed is lost");
    found.assert_merged(&Merged::newest(at.path()));
}
