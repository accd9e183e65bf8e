//! Bad usage, unusable input, help and version.

use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::trace::Trace;
use format_oracle::writer::{Fragment, Process};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

fn fails(arguments: &[&str], says: &str) {
    let ended = Ended::of(trace_merge().args(arguments));
    assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
    assert!(
        ended.stderr.contains(says),
        "{arguments:?}: {}",
        ended.stderr
    );
    assert!(ended.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn bad_usage_says_what_was_wrong() {
    fails(&["--no-such-option"], "--no-such-option");
    fails(&["--report", "yaml", "x"], "yaml");
    fails(&["--threads", "many", "x"], "many");
    fails(&["--previous", "--all-runs", "x"], "--all-runs");
    fails(&["--run", "a", "--previous", "x"], "--previous");
    fails(&["/no/such/place"], "/no/such/place");
    fails(&["/no/such/trace.*.jsonl"], "/no/such/trace.*.jsonl");
}

#[test]
fn no_path_and_no_environment_is_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Ended::of(trace_merge().current_dir(folder.path()));
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("SA_PROFILE_DIR"), "{}", ended.stderr);
}

#[test]
fn a_directory_without_fragments_is_nothing_usable() {
    let dir = RunDir::new();
    let ended = Ended::of(trace_merge().arg(dir.path()));
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains(dir.path().to_str().unwrap()),
        "{}",
        ended.stderr
    );
    assert!(!dir.path().join("trace.json").exists());
}

/// What the program prints with this option, and whether a line of it is too long for a terminal.
fn help(option: &str) -> String {
    let ended = Ended::of(trace_merge().arg(option));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{option}");
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
}

#[test]
fn version_is_that_of_the_package() {
    let version = Ended::of(trace_merge().arg("--version"));
    assert_eq!(
        String::from_utf8(version.stdout).unwrap().trim(),
        format!("trace-merge {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = Ended::of(trace_merge().args(["--completions", shell]));
        assert_eq!(ended.code, 0, "{shell}: {}", ended.stderr);
        let script = String::from_utf8(ended.stdout).unwrap();
        for option in ["no-settle", "previous", "check"] {
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
    fails(&["--completions", "csh"], "csh");
    let ended = Ended::of(trace_merge().args(["--completions", "bash"]));
    let script = String::from_utf8(ended.stdout).unwrap();
    let ask = r#"eval "$SCRIPT"; words=($(complete -p trace-merge))
        for at in "${!words[@]}"; do [[ ${words[at]} == -F ]] && function=${words[at + 1]}; done
        COMP_WORDS=(trace-merge --ch) COMP_CWORD=1; $function trace-merge --ch trace-merge; echo "${COMPREPLY[@]}""#;
    let bash = std::process::Command::new("bash")
        .args(["--norc", "-c", ask])
        .env("SCRIPT", script)
        .output()
        .unwrap();
    assert_eq!(bash.stdout, b"--check\n", "{bash:?}");
}

/// A run with one good fragment.
fn good() -> RunDir {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(95);
    fragment.line(&Process::new(95).main_thread().span(1000, 5, "good", ""));
    fragment.write_here(&dir.fragments());
    dir
}

#[test]
fn an_empty_fragment_is_no_damage() {
    let dir = good();
    dir.put("96", b"");
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["good"]);
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn a_link_to_nowhere_is_unreadable_and_a_folder_is_no_fragment() {
    let dir = good();
    std::fs::create_dir(dir.fragments().join("trace.96.jsonl")).unwrap();
    std::os::unix::fs::symlink("/no/such/file", dir.fragments().join("trace.97.jsonl")).unwrap();
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["good"]);
    let unreadable = ("trace.97.jsonl".to_owned(), 0, "unreadable".to_owned());
    assert_eq!(merged.report.damage(), [unreadable]);
}

#[test]
fn a_pipe_named_like_a_fragment_does_not_hang() {
    let dir = good();
    let made = std::process::Command::new("mkfifo")
        .arg(dir.fragments().join("trace.96.jsonl"))
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED a_pipe_named_like_a_fragment_does_not_hang: no mkfifo");
        return;
    }
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["good"]);
    assert_eq!(merged.report.kind("unreadable"), 1);
}

#[test]
fn a_pipe_or_a_device_named_like_the_run_file_is_not_read() {
    let dir = good();
    let run = dir.path().join("run");
    std::os::unix::fs::symlink("/dev/zero", &run).unwrap();
    assert_eq!(dir.merge().trace.names(), ["good"]);
    std::fs::remove_file(&run).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&run).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED a_pipe_or_a_device_named_like_the_run_file_is_not_read: no mkfifo");
        return;
    }
    assert_eq!(dir.merge().trace.names(), ["good"]);
}

#[test]
fn a_fragment_without_permission_is_unreadable() {
    let dir = good();
    let path = dir.put("96", b"{}\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = trace_merge();
    command
        .arg(dir.path())
        .args(["--strict", "-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if std::fs::File::open(&path).is_ok() {
        // Root may read everything: merge as nobody.
        command.uid(65534).gid(65534);
    }
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!(
                "SKIPPED a_fragment_without_permission_is_unreadable: cannot run the binary as another user: {error}"
            );
            return;
        }
    };
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("trace.96.jsonl") && stderr.contains("unreadable"),
        "{stderr}"
    );
    assert_eq!(Trace::parse(&output.stdout).names(), ["good"]);
}

#[test]
fn only_damage_is_nothing_usable() {
    let dir = RunDir::new();
    dir.put("96", b"garbage\n");
    let ended = Ended::of(trace_merge().arg(dir.path()));
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("trace.96.jsonl") || ended.stderr.contains("bad_json"),
        "{}",
        ended.stderr
    );
}

/// A file that is no trace is refused in words; beside others it is damage.
#[test]
fn what_is_no_trace_is_refused_in_words() {
    let dir = good();
    for (name, bytes, found) in [
        (
            "a.csv",
            &b"time,name\n1,a\n"[..],
            r#"found text that begins with "time,name""#,
        ),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "found binary data"),
        ("a.json", b"{\"a\":1}", "found JSON without an event"),
        ("blank.txt", b"\n \n", "nothing in "),
        (
            "trace.9.jsonl",
            b"hello\n",
            r#"found text that begins with "hello""#,
        ),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        fails(&[path.to_str().unwrap()], found);
        assert!(!dir.path().join("trace.json").exists(), "{name}");
    }
    let csv = dir.path().join("a.csv");
    let beside = Merged::of(&[], &[&dir.fragments(), &csv]);
    assert_eq!(beside.trace.names(), ["good"]);
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
        assert!(
            matches!(refused, trace_merge::Error::NothingUsable(_)),
            "{refused}"
        );
        assert!(!output.exists());
        let report = trace_merge::merge(&options(true)).unwrap();
        assert_eq!((report.events.total, report.damage.total), (0, damage));
        assert!(
            Trace::parse(&std::fs::read(&output).unwrap())
                .events
                .is_empty()
        );
        std::fs::remove_file(&output).unwrap();
        dir.put("7", b"garbage\n");
    }
}

#[test]
fn issue_19_more_threads_than_a_machine_has_are_not_taken() {
    let dir = RunDir::new();
    dir.put(
        "9",
        br#"{"ph":"i","pid":9,"tid":9,"ts":1,"s":"t","name":"a"}"#,
    );
    for (threads, said) in [("1", 0), ("100000", 1), ("18446744073709551615", 1)] {
        let mut merge = trace_merge();
        merge
            .args(["-o", "-", "--threads", threads])
            .arg(dir.path());
        let ended = Ended::of(&mut merge);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(Trace::parse(&ended.stdout).names(), ["a"]);
        let words = format!("trace-merge: --threads {threads}: ");
        let lines = ended.stderr.lines().filter(|line| line.starts_with(&words));
        assert_eq!(lines.count(), said, "{}", ended.stderr);
    }
}

#[test]
fn issue_19_an_empty_file_alone_is_nothing_usable() {
    let dir = RunDir::new();
    let output = dir.path().join("out.json");
    for name in ["trace.json", "kineto.json", "trace.7.jsonl"] {
        let empty = dir.path().join(name);
        std::fs::write(&empty, "").unwrap();
        let mut merge = trace_merge();
        let ended = Ended::of(merge.arg(&empty).arg("-o").arg(&output));
        assert_eq!(ended.code, 2, "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
        assert!(!output.exists(), "{name}");
        // A document without events is a trace.
        std::fs::write(&empty, r#"{"traceEvents":[]}"#).unwrap();
        let mut merge = trace_merge();
        let ended = Ended::of(merge.arg(&empty).arg("-o").arg(&output));
        assert_eq!(
            ended.code,
            if name == "trace.7.jsonl" { 2 } else { 0 },
            "{name}: {}",
            ended.stderr
        );
        let _ = std::fs::remove_file(&output);
    }
}
