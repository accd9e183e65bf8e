//! `start`, `stop` and `level`.

use crate::host::Host;
use crate::{Finished, run};
use sa_format::Level;
use sa_format::control::{CONTROL_FILE, Control, SwitchCause};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// What a command says that all obeyed; the run's id is RUN.
fn obeyed(directory: &Path, words: &[&str]) -> String {
    let said = run(words, directory);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    said.stdout.replace(&control(directory).run, "RUN")
}

fn control(directory: &Path) -> Control {
    Control::parse(&fs::read(directory.join(CONTROL_FILE)).unwrap()).unwrap()
}

/// Bytes of all fragments.
fn written(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory.join("fragments")).unwrap().flatten();
    let fragments =
        entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "jsonl"));
    fragments.map(|entry| entry.metadata().unwrap().len()).sum()
}

#[test]
fn all_processes_start_change_and_stop() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _hosts = ["a", "b"].map(|name| Host::start(directory, name, true));
    assert_eq!(
        obeyed(directory, &["start"]),
        "DIR: run RUN: 2 of 2 processes record\n"
    );
    assert_eq!(
        obeyed(directory, &["level", "e2e"]),
        "DIR: run RUN: 2 of 2 processes record e2e\n"
    );
    assert_eq!(control(directory).levels, Some(vec![Level::E2e]));
    assert_eq!(
        obeyed(directory, &["stop"]),
        "DIR: run RUN: 2 of 2 processes record nothing\n"
    );
    let mode = fs::metadata(directory.join(CONTROL_FILE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    thread::sleep(Duration::from_millis(300)); // what was recorded before is flushed
    let before = written(directory);
    thread::sleep(Duration::from_millis(300));
    assert!(
        written(directory) < before + 2000,
        "only anchors are written"
    );
    let left = fs::read_dir(directory).unwrap().flatten();
    assert!(
        !left
            .into_iter()
            .any(|entry| entry.path().extension().is_some_and(|end| end == "tmp"))
    );
}

#[test]
fn a_start_has_bounds() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _host = Host::start(directory, "a", true);
    let words = [
        "start", "--level", "verbose", "--for", "30s", "--events", "1M", "--steps", "100",
    ];
    assert_eq!(
        obeyed(directory, &words),
        "DIR: run RUN: 1 of 1 process record verbose for 30s 1,000,000 events each 100 steps (scheduler.schedule)\n"
    );
    let stored = control(directory);
    assert_eq!(
        (stored.cause, stored.events),
        (SwitchCause::Start, Some(1_000_000))
    );
    assert_eq!(
        stored.until_realtime_ns,
        Some(stored.from_realtime_ns + 30_000_000_000)
    );
    obeyed(
        directory,
        &[
            "start",
            "--steps",
            "5",
            "--step-name",
            "step",
            "--step-category",
            "engine",
        ],
    );
    let first = control(directory).id;
    for _ in 0..400 {
        if control(directory).id != first {
            assert_eq!(control(directory).cause, SwitchCause::Steps);
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("nobody stored a stop after five steps");
}

#[test]
fn who_does_not_obey_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _obedient = Host::start(directory, "a", false);
    let stuck = Host::start(directory, "b", false);
    stuck.signal("STOP");
    let said = run(&["stop"], directory);
    let run_id = control(directory).run;
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        said,
        Finished {
            code: Some(1),
            stdout: format!("DIR: run {run_id}: 1 of 2 processes record nothing\n"),
            stderr: format!(
                "sa-profile: {program} [{}] did not obey within 2 s\n",
                stuck.pid()
            ),
        }
    );
    let said = run(&["start", "--no-wait"], directory);
    assert_eq!(
        said.stdout,
        format!("DIR: run {run_id}: 2 processes told to record\n")
    );
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    stuck.signal("CONT");
    assert_eq!(
        obeyed(directory, &["stop"]),
        "DIR: run RUN: 2 of 2 processes record nothing\n"
    );
}

#[test]
fn issue_19_a_process_without_a_helper_obeys_with_its_next_event_and_is_explained_until_then() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let host = Host::start_with(directory, "a", &[("SA_PROFILE_THREADS", "0")]);
    host.signal("STOP");
    let said = run(&["stop"], directory);
    assert_eq!(said.code, Some(1));
    let words = "did not obey within 2 s: it has no thread that looks (docs/threads.md), and will with its next event\n";
    assert!(said.stderr.ends_with(words), "{said:?}");
    host.signal("CONT");
    thread::sleep(Duration::from_secs(3)); // it looks with the first event of a second
    host.end();
    let fragments = fs::read_dir(directory.join("fragments")).unwrap().flatten();
    let text: String = fragments
        .map(|entry| fs::read_to_string(entry.path()).unwrap())
        .collect();
    assert!(
        text.contains(r#""args":{"levels":[],"cause":"stop""#),
        "it has obeyed"
    );
}

#[test]
fn nobody_is_left_to_obey() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    Host::start(directory, "a", false).end();
    assert_eq!(
        run(&["stop"], directory),
        Finished {
            code: Some(2),
            stdout: String::new(),
            stderr: "sa-profile: DIR: expected processes that record, found none alive\n"
                .to_owned(),
        }
    );
    assert!(!directory.join(CONTROL_FILE).exists());
}

#[test]
fn a_directory_that_takes_no_file_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _host = Host::start(directory, "a", false);
    fs::create_dir(directory.join(CONTROL_FILE)).unwrap();
    let said = run(&["stop"], directory);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
    assert!(
        said.stderr.starts_with("sa-profile: DIR/control: "),
        "{said:?}"
    );
    assert_eq!(said.stderr.lines().count(), 1);
}
