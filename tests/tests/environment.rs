//! The environment variables: where a run is recorded, at which level, and with which file modes.

use e2e::host_support::{Found, Host, scratch};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const HOST: &str = env!("CARGO_BIN_EXE_host");

#[test]
fn the_older_variable_names_a_directory_or_a_trace_file() {
    let dir = scratch();
    let host = || Host::new(HOST).arguments(&["spans", "work", "10"]);
    let plain = dir.path().join("plain");
    let _outcome = host().variable("SA_PROFILE_OUTPUT", &plain).run().quiet();
    Found::in_dir(&plain.join("fragments")).assert_exactly(&[("work", 10)]);

    let trace = dir.path().join("x.json");
    let _outcome = host().variable("SA_PROFILE_OUTPUT", &trace).run().quiet();
    assert!(!trace.exists(), "only the merge writes the trace");
    Found::in_dir(&dir.path().join("x.json.fragments")).assert_exactly(&[("work", 10)]);

    let (wins, ignored) = (dir.path().join("wins"), dir.path().join("ignored"));
    let both = host()
        .recorded_in(&wins)
        .variable("SA_PROFILE_OUTPUT", &ignored)
        .run();
    let line = both.one_line();
    assert!(
        line.contains("SA_PROFILE_DIR") && line.contains("SA_PROFILE_OUTPUT"),
        "{line}"
    );
    Found::in_dir(&wins).assert_exactly(&[("work", 10)]);
    assert!(!ignored.exists());
}

/// The levels that were recorded in `dir`, and the warnings.
fn levels(dir: &Path, value: &str) -> (Vec<String>, String) {
    let host = Host::new(HOST)
        .arguments(&["levels"])
        .recorded_in(dir)
        .variable("SA_PROFILE_LEVEL", value);
    let outcome = host.run();
    assert_eq!(outcome.stdout, "levels\n");
    (
        Found::in_dir(dir).counts().into_keys().collect(),
        outcome.stderr,
    )
}

#[test]
fn levels_are_parsed_and_unknown_words_named_in_one_line() {
    for (value, expected) in [
        ("", vec!["e2e", "kernel"]),
        ("e2e", vec!["e2e"]),
        (" Kernel , E2E ", vec!["e2e", "kernel"]),
        ("kernel", vec!["kernel"]),
        ("VERBOSE", vec!["e2e", "kernel", "verbose"]),
    ] {
        let dir = scratch();
        assert_eq!(
            levels(dir.path(), value),
            (
                expected.iter().map(|word| (*word).to_owned()).collect(),
                String::new()
            ),
            "{value:?}"
        );
    }
    let dir = scratch();
    let (recorded, stderr) = levels(dir.path(), "kernel,everything,sometimes");
    assert_eq!(recorded, ["kernel"], "known words still apply");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for word in ["everything", "e2e", "kernel", "verbose"] {
        assert!(stderr.contains(word), "{word} in {stderr}");
    }
}

#[test]
fn a_level_alone_records_into_profile_out() {
    let dir = scratch();
    let _outcome = Host::new(HOST)
        .arguments(&["spans", "work", "10"])
        .variable("SA_PROFILE_LEVEL", "e2e")
        .working_in(dir.path())
        .run()
        .quiet();
    Found::in_dir(&dir.path().join("profile_out")).assert_exactly(&[("work", 10)]);
}

#[test]
fn without_a_variable_nothing_is_recorded_or_created() {
    let dir = scratch();
    let _outcome = Host::new(HOST)
        .arguments(&["spans", "work", "10"])
        .working_in(dir.path())
        .run()
        .quiet();
    assert_eq!(fs::read_dir(dir.path()).expect("the directory").count(), 0);
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .permissions()
        .mode()
        & 0o7777
}

/// Runs a host that dies, so that its ring is still there, and gives the modes of directory, folder, run file, fragment and ring.
fn modes(umask: &str, asked: Option<&str>) -> [u32; 5] {
    let outer = scratch();
    let dir = outer.path().join("run-directory");
    let mut host = Host::new(HOST)
        .arguments(&["--umask", umask, "killed", "work", "10"])
        .recorded_in(&dir);
    if let Some(asked) = asked {
        host = host.variable("SA_PROFILE_MODE", asked);
    }
    let pid = host.run().was_killed().pid;
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
    assert_eq!(modes("000", None), [0o700, 0o700, 0o600, 0o600, 0o600]);
    assert_eq!(modes("022", None), [0o700, 0o700, 0o600, 0o600, 0o600]);
    assert_eq!(
        modes("022", Some("0640")),
        [0o750, 0o750, 0o640, 0o640, 0o640]
    );
    assert_eq!(
        modes("000", Some("0640")),
        [0o750, 0o750, 0o640, 0o640, 0o640]
    );
    assert_eq!(
        modes("077", Some("0640")),
        [0o750, 0o750, 0o640, 0o640, 0o640]
    );
}

#[test]
fn folders_keep_the_group_that_their_parent_shares() {
    let outer = scratch();
    let shared = outer.path().join("shared");
    fs::create_dir(&shared).expect("own directory");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)).expect("own directory");
    let dir = shared.join("new/run-directory");
    let _outcome = Host::new(HOST)
        .arguments(&["--umask", "077", "spans", "work", "10"])
        .recorded_in(&dir)
        .variable("SA_PROFILE_MODE", "0640")
        .run()
        .quiet();
    for folder in [shared.join("new"), dir.clone(), dir.join("fragments")] {
        assert_eq!(mode(&folder), 0o2750, "{}", folder.display());
    }
}

/// A host that has something to say on a stderr of the test's own.
fn warned(stderr: impl Into<std::process::Stdio>) {
    let dir = scratch();
    let outcome = Host::new(HOST)
        .arguments(&["--deadly-pipes", "spans", "work", "10"])
        .recorded_in(dir.path())
        .variable("SA_PROFILE_LEVEL", "e2e,bogus")
        .stderr(stderr)
        .deadline(Duration::from_secs(20))
        .run();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    Found::in_dir(dir.path()).assert_exactly(&[("work", 10)]);
}

#[test]
fn a_warning_on_a_stderr_that_nobody_reads_kills_nobody() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    warned(writer);
}

#[test]
fn a_warning_does_not_wait_for_a_full_stderr() {
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    let full = vec![b'-'; 64 << 10]; // what a pipe holds
    writer.write_all(&full).expect("the pipe is empty");
    warned(writer);
}
