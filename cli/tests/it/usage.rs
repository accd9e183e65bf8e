//! Tests invalid arguments, and where commands search for a run.

use crate::program::Ground;

#[test]
fn bad_usage_says_what_was_expected() {
    let ground = Ground::new();
    for (words, expected) in [
        (
            "level all",
            "expected e2e, kernel or verbose, found \"all\"",
        ),
        ("level ,", "`sa-profile stop` records nothing"),
        ("start --for soon", "expected a time such as 30s"),
        ("start --events 0", "expected a number such as 1000"),
        ("start --step-name x", "--steps <N>"),
        ("start --wait --no-wait", "cannot be used with"),
        ("begin", "unrecognized subcommand"),
        (
            "run --level e2e,kernels -- true",
            r#"unknown level "kernels", expected e2e, kernel, verbose"#,
        ),
        ("run --max-mb 3 -- true", "expected"),
        ("run --max-mb 4.5 -- true", "expected"),
        ("run --track step -- true", "MODULE:FUNCTION"),
        ("run --track a:f,b:g -- true", "MODULE:FUNCTION"),
        ("run --track a:f -- true", "--python"),
        ("run --tasks -- true", "--python"),
        ("tables --to t --host-id 16777216 out", "16777216"),
    ] {
        let ended = ground.run_words(words);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{words:?}"
        );
        ended.says(&[expected]);
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    for word in ["--help", "-h", "--version"] {
        let text = Ground::new().run(&[word]);
        assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""), "{word}");
        assert!(text.stdout.starts_with("S") || text.stdout.starts_with("sa-profile"));
    }
}

/// Each help fits on two screens, and no line is too long for a terminal.
#[test]
fn help_is_short() {
    let every = [
        "run", "open", "tables", "sql", "bundle", "doctor", "start", "stop", "level", "status",
        "watch", "serve", "snapshot",
    ];
    let of_commands = every.map(|command| vec![command, "--help"]);
    for words in of_commands.into_iter().chain([vec!["--help"]]) {
        let text = Ground::new().run(&words).stdout;
        assert!(text.lines().count() <= 53, "{words:?}: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{words:?}: {line}");
        }
    }
}

#[test]
fn completions_know_the_commands_and_options() {
    let ground = Ground::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ground.run(&["completions", shell]);
        assert_eq!(script.code, Some(0), "{shell}: {script:?}");
        for word in ["doctor", "snapshot", "max-mb", "step-name"] {
            assert!(script.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(ground.run(&["completions", "csh"]).code, Some(2));
}
