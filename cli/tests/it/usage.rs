//! Words that make no sense, and where a run is looked for.

use crate::host::Host;
use crate::{command, run};

#[test]
fn bad_usage_says_what_was_expected() {
    let scratch = tempfile::tempdir().unwrap();
    for (words, expected) in [
        (
            &["level", "all"][..],
            "expected e2e, kernel or verbose, found \"all\"",
        ),
        (&["level", ","], "`sa-profile stop` records nothing"),
        (&["start", "--for", "soon"], "expected a time such as 30s"),
        (
            &["start", "--events", "0"],
            "expected a number such as 1000",
        ),
        (&["start", "--step-name", "x"], "--steps <N>"),
        (&["start", "--wait", "--no-wait"], "cannot be used with"),
        (&["begin"], "unrecognized subcommand"),
    ] {
        let said = run(words, scratch.path());
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{words:?}"
        );
        assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    for word in ["--help", "-h", "--version"] {
        let output = command(&[word]).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{word}"
        );
        assert!(output.stdout.starts_with(b"S") || output.stdout.starts_with(b"sa-profile"));
    }
}

#[test]
fn the_directory_comes_from_the_environment() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("profile_out");
    let _host = Host::start(&directory, "a", false);
    let by_default = command(&["status"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(by_default.status.success(), "{by_default:?}");
    let named = command(&["status"])
        .env("SA_PROFILE_DIR", &directory)
        .output()
        .unwrap();
    assert!(named.status.success(), "{named:?}");
    let elsewhere = command(&["status"])
        .env("SA_PROFILE_OUTPUT", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(elsewhere.status.code(), Some(2), "{elsewhere:?}");
}
