//! Bad usage, unusable input, help and version.

use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::output::run;
use crate::trace::Trace;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Runs a merge that succeeds.
pub(crate) fn merges(command: &mut Command) -> Ended {
    let ended = Ended::of(command);
    assert_eq!(ended.code, 0, "{command:?}: {}", ended.stderr);
    ended
}

/// Runs a merge that is refused with these words.
pub(crate) fn refuses(command: &mut Command, says: &[&str]) {
    let ended = Ended::of(command);
    assert_eq!(ended.code, 2, "{command:?}: {}", ended.stderr);
    for says in says {
        assert!(ended.stderr.contains(says), "{says}: {}", ended.stderr);
    }
    assert!(ended.stdout.is_empty(), "{command:?}");
}

#[test]
fn bad_usage_says_what_was_wrong() {
    for (arguments, says) in [
        (&["--no-such-option"][..], "--no-such-option"),
        (&["--report", "yaml", "x"], "yaml"),
        (&["--threads", "many", "x"], "many"),
        (&["--previous", "--all-runs", "x"], "--all-runs"),
        (&["--run", "a", "--previous", "x"], "--previous"),
        (&["--sort", "--verbatim", "x"], "--verbatim"),
        (&["--completions", "csh"], "csh"),
        (&["/no/such/place"], "/no/such/place"),
        (&["/no/such/trace.*.jsonl"], "/no/such/trace.*.jsonl"),
    ] {
        refuses(trace_merge().args(arguments), &[says]);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut nowhere = trace_merge();
    refuses(nowhere.current_dir(folder.path()), &["SA_PROFILE_DIR"]);
}

/// What the program prints with this option, and whether a line of it is too long for a terminal.
fn help(option: &str) -> String {
    let ended = merges(trace_merge().arg(option));
    assert_eq!(ended.stderr, "", "{option}");
    let text = String::from_utf8(ended.stdout).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{option}: {line}");
    }
    text
}

/// Two screens of 30 lines hold all of `--help`, one and a half hold `-h`.
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

#[test]
fn what_is_no_fragment_beside_one_is_unreadable_or_left_alone() {
    let dir = run(1);
    let path = |name: &str| dir.fragments().join(name);
    dir.put("95", b"");
    fs::create_dir(path("trace.96.jsonl")).unwrap();
    symlink("/no/such/file", path("trace.97.jsonl")).unwrap();
    mkfifo(&path("trace.98.jsonl"));
    fs::write(path("notes.txt"), "not ours").unwrap();
    fs::write(path("trace.json"), "not ours").unwrap();
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["a"]);
    let unreadable = |name: &str| (name.to_owned(), 0, "unreadable".to_owned());
    let expected = ["trace.97.jsonl", "trace.98.jsonl"].map(unreadable);
    assert_eq!(merged.report.damage(), expected);
}

#[test]
fn a_pipe_or_a_device_named_like_the_run_file_is_not_read() {
    let dir = run(1);
    let run = dir.path().join("run");
    symlink("/dev/zero", &run).unwrap();
    assert_eq!(dir.merge().trace.names(), ["a"]);
    fs::remove_file(&run).unwrap();
    mkfifo(&run);
    assert_eq!(dir.merge().trace.names(), ["a"]);
}

#[test]
fn a_fragment_without_permission_is_unreadable() {
    let dir = run(1);
    let path = dir.put("96", b"{}\n");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let mut command = trace_merge();
    command.arg(dir.path()).args(["--strict", "-o", "-"]);
    if fs::File::open(&path).is_ok() {
        // Root may read everything: merge as nobody.
        command.uid(65534).gid(65534);
    }
    let Ok(output) = command.output() else {
        eprintln!(
            "SKIPPED a_fragment_without_permission_is_unreadable: cannot run the binary as another user"
        );
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for word in ["trace.96.jsonl", "unreadable"] {
        assert!(stderr.contains(word), "{stderr}");
    }
    assert_eq!(Trace::parse(&output.stdout).names(), ["a"]);
}

/// A file that is no trace is refused in words; beside others it is damage.
#[test]
fn what_is_no_trace_is_refused_in_words() {
    let dir = run(1);
    let output = dir.path().join("out.json");
    for (name, bytes, found) in [
        (
            "a.csv",
            &b"time,name\n1,a\n"[..],
            r#"found text that begins with "time,name""#,
        ),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "found binary data"),
        ("a.json", b"{\"a\":1}", "found JSON without an event"),
        ("blank.txt", b"\n \n", "nothing in "),
        ("trace.json", b"", "trace.json"),
        ("trace.7.jsonl", b"", "trace.7.jsonl"),
        ("trace.8.jsonl", br#"{"traceEvents":[]}"#, "trace.8.jsonl"),
        (
            "trace.9.jsonl",
            b"hello\n",
            r#"found text that begins with "hello""#,
        ),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let mut command = trace_merge();
        refuses(command.arg("-o").args([&output, &path]), &[found]);
        assert!(!output.exists(), "{name}");
    }
    // A document without events is a trace.
    let document = dir.path().join("trace.json");
    fs::write(&document, r#"{"traceEvents":[]}"#).unwrap();
    merges(trace_merge().arg("-o").args([&output, &document]));
    let csv = dir.path().join("a.csv");
    let beside = Merged::of(&[], &[&dir.fragments(), &csv]);
    assert_eq!(beside.trace.names(), ["a"]);
    assert!(beside.report.number("damage_total") > 0);
}

#[test]
fn inputs_without_an_event_may_give_an_empty_trace() {
    let dir = RunDir::new();
    let output = dir.path().join("empty.json");
    let options = |allow_empty| trace_merge::Options {
        output: trace_merge::Output::File(output.clone()),
        allow_empty,
        ..trace_merge::Options::new([dir.fragments()])
    };
    for damage in [0, 1] {
        let refused = trace_merge::merge(&options(false)).unwrap_err();
        let is_nothing = matches!(refused, trace_merge::Error::NothingUsable(_));
        assert!(is_nothing, "{refused}");
        let path = dir.fragments();
        refuses(trace_merge().arg(&path), &[path.to_str().unwrap()]);
        assert!(!output.exists() && !dir.path().join("trace.json").exists());
        let report = trace_merge::merge(&options(true)).unwrap();
        assert_eq!((report.events.total, report.damage.total), (0, damage));
        let trace = Trace::parse(&fs::read(&output).unwrap());
        assert!(trace.events.is_empty());
        fs::remove_file(&output).unwrap();
        dir.put("7", b"garbage\n");
    }
}

#[test]
fn issue_19_more_threads_than_a_machine_has_are_not_taken() {
    let dir = run(1);
    for (threads, said) in [("1", 0), ("100000", 1), ("18446744073709551615", 1)] {
        let mut merge = trace_merge();
        let ended = merges(
            merge
                .args(["-o", "-", "--threads", threads])
                .arg(dir.path()),
        );
        assert_eq!(Trace::parse(&ended.stdout).names(), ["a"]);
        let words = format!("trace-merge: --threads {threads}: ");
        let lines = ended.stderr.lines().filter(|line| line.starts_with(&words));
        assert_eq!(lines.count(), said, "{}", ended.stderr);
    }
}
