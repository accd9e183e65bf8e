//! Help, version, completions and empty traces. `tests/cases/usage.txt` covers bad usage and
//! unusable input.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::trace::Trace;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::path::Path;
use std::process::Command;
use trace_merge::{Error, Options, Output};

/// Runs a merge that must succeed.
pub(crate) fn merges(command: &mut Command) -> Ended {
    let ended = Ended::run(command);
    assert_eq!(ended.code, 0, "{command:?}: {}", ended.stderr);
    ended
}

/// Returns the output for this option. Fails if a line is too long for a terminal.
fn help(option: &str) -> String {
    let ended = merges(trace_merge().arg(option));
    assert_eq!(ended.stderr, "", "{option}");
    let text = String::from_utf8(ended.stdout).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{option}: {line}");
    }
    text
}

/// All of `--help` fits on two screens of 30 lines, and `-h` on one and a half.
#[test]
fn help_is_short() {
    let (short, long) = (help("-h"), help("--help"));
    assert!(long.lines().count() <= 60, "{long}");
    assert!(short.lines().count() <= 40, "{short}");
    for word in [
        "Examples:",
        "--strict",
        "--no-settle",
        "rings",
        "Rarely needed",
    ] {
        assert!(long.contains(word), "{word}: {long}");
    }
    assert!(!short.contains("--no-settle") && short.contains("--last"));
    let version = format!("trace-merge {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(help("--version"), version);
}

#[test]
fn completions_know_the_options() {
    let script = |shell| {
        let ended = merges(trace_merge().args(["--completions", shell]));
        String::from_utf8(ended.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = script(shell);
        for option in ["no-settle", "previous", "check"] {
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
    let ask = r#"eval "$SCRIPT"; words=($(complete -p trace-merge))
        for at in "${!words[@]}"; do [[ ${words[at]} == -F ]] && function=${words[at + 1]}; done
        COMP_WORDS=(trace-merge --ch) COMP_CWORD=1; $function trace-merge --ch trace-merge; echo "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ask]);
    let bash = bash.env("SCRIPT", script("bash")).output().unwrap();
    assert_eq!(bash.stdout, b"--check\n", "{bash:?}");
}

pub(crate) fn mkfifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

/// A caller of the library may ask for a trace without events, but the program refuses to write
/// one.
#[test]
fn inputs_without_an_event_may_give_an_empty_trace() {
    let dir = RunDir::new();
    let output = dir.path().join("empty.json");
    let merge = |allow_empty| {
        trace_merge::merge(&Options {
            output: Output::File(output.clone()),
            allow_empty,
            ..Options::new([dir.fragments()])
        })
    };
    let refused = merge(false).unwrap_err();
    let is_nothing = matches!(refused, Error::NothingUsable(_));
    assert!(is_nothing && !output.exists(), "{refused}");
    assert_eq!(merge(true).unwrap().events.total, 0);
    assert!(Trace::parse(&fs::read(&output).unwrap()).events.is_empty());
}
