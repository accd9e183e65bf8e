//! Words that make no sense, and where a run is looked for.

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

/// Two screens hold each help, and no line is too long for a terminal.
#[test]
fn help_is_short() {
    let every = [
        "run", "open", "tables", "sql", "doctor", "start", "stop", "level", "status", "watch",
        "serve", "snapshot",
    ];
    let of_commands = every.map(|command| vec![command, "--help"]);
    for words in of_commands.into_iter().chain([vec!["--help"]]) {
        let output = command(&words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() <= 50, "{words:?}: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{words:?}: {line}");
        }
    }
}

#[test]
fn completions_know_the_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = command(&["completions", shell]).output().unwrap();
        assert!(output.status.success(), "{shell}: {output:?}");
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["doctor", "snapshot", "max-mb", "step-name"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let output = command(&["completions", "csh"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
