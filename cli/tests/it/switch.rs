//! Tests `start`, `stop` and `level`.

use crate::program::{Ended, Ground, Started};
use sa_format::Level;
use sa_format::control::{CONTROL_FILE, Control, SwitchCause};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

/// Starts a process that does not record yet.
fn paused(ground: &Ground, name: &str) -> Started {
    ground.host_with(&[name], &[("SA_PROFILE_START", "paused")])
}

/// Checks that a command succeeds and prints this about the run.
#[track_caller]
fn obeyed(ground: &Ground, words: &str, expected: &str) {
    let ended = ground.run_words(&format!("{words} out"));
    let run = control(ground).run;
    assert_eq!(ended, Ended::done(format!("out: run {run}: {expected}\n")));
}

fn control(ground: &Ground) -> Control {
    let path = ground.path("out").join(CONTROL_FILE);
    Control::parse(&fs::read(path).unwrap()).unwrap()
}

/// Returns the bytes of all fragments.
fn written(ground: &Ground) -> u64 {
    let fragments = ground.fragments("out").into_iter();
    let bytes = fragments.map(|path| path.metadata().unwrap().len());
    bytes.sum()
}

#[test]
fn all_processes_start_change_and_stop() {
    let ground = Ground::new();
    let _hosts = ["a", "b"].map(|name| paused(&ground, name));
    obeyed(&ground, "start", "2 of 2 processes record");
    obeyed(&ground, "level E2E,", "2 of 2 processes record e2e");
    assert_eq!(control(&ground).levels, Some(vec![Level::E2e]));
    obeyed(&ground, "stop", "2 of 2 processes record nothing");
    let file = fs::metadata(ground.path("out").join(CONTROL_FILE)).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    thread::sleep(Duration::from_millis(300)); // until events recorded before are flushed
    let before = written(&ground);
    thread::sleep(Duration::from_millis(300));
    let after = written(&ground);
    assert!(after < before + 2000, "only anchors are written");
    let mut left = fs::read_dir(ground.path("out")).unwrap().flatten();
    let is_aside = |entry: fs::DirEntry| entry.path().extension().is_some_and(|end| end == "tmp");
    assert!(!left.any(is_aside));
}

#[test]
fn a_start_has_bounds() {
    let ground = Ground::new();
    let host = paused(&ground, "a");
    let words = "start --level verbose --for 30s --events 1M --steps 100";
    let expected = "1 of 1 process record verbose for 30s 1,000,000 events each 100 steps (scheduler.schedule)";
    obeyed(&ground, words, expected);
    let stored = control(&ground);
    assert_eq!(
        (stored.cause, stored.events),
        (SwitchCause::Start, Some(1_000_000))
    );
    assert_eq!(
        stored.until_realtime_ns,
        Some(stored.from_realtime_ns + 30_000_000_000)
    );
    let words = "start --steps=5 --step-name=step --step-category=engine";
    obeyed(&ground, words, "1 of 1 process record 5 steps (step)");
    host.wait_until(|| control(&ground).cause == SwitchCause::Steps);
}

#[test]
fn who_does_not_obey_is_named() {
    let ground = Ground::new();
    let _obedient = ground.host("a");
    let stuck = ground.host("b");
    stuck.signal("STOP");
    let ended = ground.run(&["stop", "out"]);
    let run = control(&ground).run;
    let why = format!("worker [{}] did not obey within 2 s", stuck.pid());
    let expected = Ended {
        code: Some(1),
        stdout: format!("out: run {run}: 1 of 2 processes record nothing\n"),
        ..Ended::refusal(&why)
    };
    assert_eq!(ended, expected);
    obeyed(&ground, "start --no-wait", "2 processes asked to record");
    stuck.signal("CONT");
    obeyed(&ground, "stop", "2 of 2 processes record nothing");
}

#[test]
fn issue_19_a_process_without_a_helper_obeys_with_its_next_event_and_is_explained_until_then() {
    let ground = Ground::new();
    let host = ground.host_with(&["a"], &[("SA_PROFILE_THREADS", "0")]);
    host.signal("STOP");
    let said = ground.run(&["stop", "out"]);
    assert_eq!(said.code, Some(1));
    let words = "did not obey within 2 s: it has no recorder thread (docs/threads.md) and will obey with its next event\n";
    assert!(said.stderr.ends_with(words), "{said:?}");
    host.signal("CONT");
    thread::sleep(Duration::from_secs(3)); // without the thread, it checks with the first event of each second
    host.end();
    let text = fs::read_to_string(&ground.fragments("out")[0]).unwrap();
    let switch = r#""args":{"levels":[],"cause":"stop""#;
    assert!(text.contains(switch), "it has obeyed");
}

#[test]
fn nobody_is_left_to_obey() {
    let ground = Ground::new();
    ground.host("a").end();
    let refusal = "out: expected live processes that record, found none";
    assert_eq!(ground.run(&["stop", "out"]), Ended::refusal(refusal));
    assert!(!ground.path("out").join(CONTROL_FILE).exists());
}

#[test]
fn a_directory_that_takes_no_file_is_an_error() {
    let ground = Ground::new();
    let _host = ground.host("a");
    fs::create_dir(ground.path("out").join(CONTROL_FILE)).unwrap();
    let ended = ground.run(&["stop", "out"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(
        ended.stderr.starts_with("sa-profile: out/control: "),
        "{ended:?}"
    );
    assert_eq!(ended.stderr.lines().count(), 1);
}
