//! A merge that is ended in the middle, and one without `/proc`: what lies in the folder afterwards.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::output::{names, run};
use crate::trace::Trace;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs::{File, Permissions};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So many that compressing them takes many times as long as noticing that the trace has begun.
const SPANS: u64 = 250_000;
/// Bytes written by a merge that is in the middle.
const BEGUN_BYTES: u64 = 1 << 16;
/// Merges started before giving up on ending one in the middle.
const ATTEMPTS: u32 = 5;

/// A user who is not root.
const NOBODY: u32 = 65534;

/// Waits until a merge has begun to write; false if it has ended before that was seen.
fn has_begun(child: &mut Child) -> bool {
    while child.try_wait().unwrap().is_none() {
        if written_bytes(child.id()).is_some_and(|bytes| bytes >= BEGUN_BYTES) {
            return true;
        }
        sleep(Duration::from_millis(1));
    }
    false
}

/// Bytes that a process has written so far; `None` if it ends just now.
fn written_bytes(pid: u32) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.parse().ok()
}

/// Starts a merge into `output` and sends it `signal` in the middle; whether that ended it.
fn ended_in_the_middle(dir: &RunDir, output: &Path, signal: Signal) -> bool {
    let mut child = trace_merge()
        .args(["-q", "--threads", "1", "-o"])
        .args([output, dir.path()])
        .spawn()
        .unwrap();
    if has_begun(&mut child) {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    // A shell shows 128 and the number of the signal, 130 for Ctrl-C.
    child.wait().unwrap().signal() == Some(signal.as_raw())
}

/// Merges until one is ended in the middle, with `old` as the trace that is there already.
fn end_in_the_middle(dir: &RunDir, old: Option<&str>, signal: Signal) {
    let output = dir.path().join("out.json.gz");
    let ended = (0..ATTEMPTS).any(|_| {
        let _ = std::fs::remove_file(&output);
        if let Some(old) = old {
            std::fs::write(&output, old).unwrap();
        }
        ended_in_the_middle(dir, &output, signal)
    });
    assert!(ended, "every merge was over before {signal:?} came");
    assert_eq!(std::fs::read_to_string(&output).ok().as_deref(), old);
}

/// A run, if a file needs no name in its folder.
fn run_without_names(test: &str, spans: u64) -> Option<RunDir> {
    let dir = run(spans);
    let mut nameless = File::options();
    nameless.write(true).custom_flags(libc::O_TMPFILE);
    if let Err(error) = nameless.open(dir.path()) {
        eprintln!("SKIPPED {test}: no files without a name: {error}");
        return None;
    }
    Some(dir)
}

#[test]
fn a_merge_that_is_ended_leaves_nothing() {
    let Some(dir) = run_without_names("a_merge_that_is_ended_leaves_nothing", SPANS) else {
        return;
    };
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        end_in_the_middle(&dir, None, signal);
        assert_eq!(names(dir.path()), ["fragments"]);
        end_in_the_middle(&dir, Some("old"), signal);
        assert_eq!(names(dir.path()), ["fragments", "out.json.gz"]);
    }
}

#[test]
fn a_killed_merge_leaves_no_part() {
    let Some(dir) = run_without_names("a_killed_merge_leaves_no_part", SPANS) else {
        return;
    };
    let killed = (0..ATTEMPTS).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let mut merge = trace_merge();
        merge.args(["-q", "--split=4MB", "--threads", "1", "-o"]);
        merge.args([&folder.path().join("out.json.gz"), dir.path()]);
        let mut child = merge.spawn().unwrap();
        // Six parts, of some 400 kB each.
        let is_in_the_second =
            |child: &Child| written_bytes(child.id()).is_some_and(|bytes| bytes > 500_000);
        while child.try_wait().unwrap().is_none() && !is_in_the_second(&child) {
            sleep(Duration::from_millis(1));
        }
        let _ = child.kill(); // perhaps it has ended
        let was_killed = child.wait().unwrap().signal() == Some(Signal::KILL.as_raw());
        assert!(!was_killed || names(folder.path()).is_empty());
        was_killed
    });
    assert!(killed, "every merge was over before it was killed");
}

/// A shell that does something where `/proc` is hidden; nothing (said loudly) where it cannot be.
fn without_proc(test: &str, then: &str) -> Option<Command> {
    let shell = |then: &str| {
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs none /proc && {then}");
        command.args(["--mount", "sh", "-c", &script]);
        command
    };
    let hidden = shell("true").output();
    if !hidden.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED {test}: cannot hide /proc here");
        return None;
    }
    Some(shell(then))
}

#[test]
fn a_merge_without_proc_goes_through_a_temporary_name() {
    let test = "a_merge_without_proc_goes_through_a_temporary_name";
    let dir = run(10);
    let output = dir.path().join("out.json");
    for round in ["new", "there"] {
        let Some(mut merge) = without_proc(test, r#"exec "$0" -q -o "$1" "$2""#) else {
            return;
        };
        merge.arg(trace_merge().get_program());
        let ended = Ended::of(merge.args([&output, dir.path()]));
        assert_eq!(ended.code, 0, "{round}: {}", ended.stderr);
        assert_eq!(names(dir.path()), ["fragments", "out.json"], "{round}");
    }
    let trace = Trace::parse(&std::fs::read(output).unwrap());
    assert_eq!(trace.shown().count(), 10);
}

/// A merge that is in the middle: of what it writes into a pipe only the first byte is read.
fn begun(merge: &mut Command) -> (Child, ChildStdout) {
    let mut child = merge.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    (child, stdout)
}

fn blocked(merge: &mut Command) -> (Child, ChildStdout) {
    begun(merge.stderr(Stdio::piped()))
}

#[test]
fn one_signal_ends_a_merge_that_waits_and_says_so() {
    let dir = run(20_000);
    for (signal, name) in [
        (Signal::INT, "SIGINT"),
        (Signal::TERM, "SIGTERM"),
        (Signal::HUP, "SIGHUP"),
    ] {
        let (child, _stdout) = blocked(trace_merge().args(["-o", "-"]).arg(dir.path()));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal.as_raw()));
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("trace-merge: stopped by {name} before the end\n");
        assert_eq!(said, expected);
    }
}

/// A pipe that takes nothing more, and its reader.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[0; 1]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

#[test]
fn a_signal_ends_a_merge_whose_words_nobody_reads() {
    let dir = run(20_000);
    let (_reader, writer) = full_pipe();
    let mut merge = trace_merge();
    let (mut child, _stdout) = begun(merge.args(["-o", "-"]).arg(dir.path()).stderr(writer));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("the signal did not end it");
        }
        sleep(Duration::from_millis(10));
    }
    let signal = child.wait().unwrap().signal();
    assert_eq!(signal, Some(Signal::INT.as_raw()));
}

/// A merge whose user may have no more than `limit` threads in all; nothing where no other user can be.
fn with_threads(dir: &RunDir, limit: &str) -> Option<Output> {
    let mut merge = Command::new("bash");
    merge.args(["-c", &format!("ulimit -u {limit} && exec \"$0\" \"$@\"")]);
    merge.arg(trace_merge().get_program());
    merge.args(["-q", "--threads", "2", "-o", "-"]);
    merge.arg(dir.path());
    if geteuid().is_root() {
        // Root may have any number of threads.
        merge.uid(NOBODY).gid(NOBODY);
    }
    merge.output().ok()
}

/// Threads that the user of such a merge has now: the limit is one of all of them.
fn threads_of_user() -> u64 {
    let user = match geteuid().is_root() {
        true => NOBODY,
        false => geteuid().as_raw(),
    };
    let of_user = format!("grep -c '^Uid:[[:space:]]*{user}[[:space:]]'");
    let all = format!("cat /proc/[0-9]*/task/*/status 2> /dev/null | {of_user}");
    let output = Command::new("sh").args(["-c", &all]).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_merge_without_threads_to_spare_does_without_or_says_so() {
    let test = "a_merge_without_threads_to_spare_does_without_or_says_so";
    let dir = run(50_000);
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let Some(free) = with_threads(&dir, "unlimited").filter(|free| free.status.success()) else {
        eprintln!("SKIPPED {test}: no merge of another user here");
        return;
    };
    let now = threads_of_user();
    let limits = [0].into_iter().chain(now..now + 12);
    let outputs = limits.map(|limit| with_threads(&dir, &limit.to_string()).unwrap());
    let (mut refused, mut merged) = (0, 0);
    for output in outputs.chain([free]) {
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            assert_eq!(Trace::parse(&output.stdout).shown().count(), 50_000);
            assert_eq!(said, "");
            merged += 1;
        } else {
            assert!(said.starts_with("trace-merge: threads: "), "{said}");
            assert_eq!(output.status.code(), Some(2), "{said}");
            refused += 1;
        }
    }
    assert!(refused > 0 && merged > 0, "{refused} {merged}");
}

#[test]
fn a_signal_that_is_ignored_ends_nothing() {
    let test = "half of a_signal_that_is_ignored_ends_nothing";
    let dir = run(20_000);
    let script = "trap '' INT HUP; exec \"$0\" -q -o - \"$1\"";
    goes_on(&dir, Command::new("sh").args(["-c", script]));
    if let Some(mut merge) = without_proc(test, script) {
        goes_on(&dir, &mut merge);
    }
}

/// Signals do not end this merge.
fn goes_on(dir: &RunDir, merge: &mut Command) {
    merge.arg(trace_merge().get_program()).arg(dir.path());
    let (mut child, mut stdout) = blocked(merge);
    for signal in [Signal::INT, Signal::HUP] {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.ends_with(b"]}\n"));
}

#[test]
fn a_signal_takes_the_temporary_name_away() {
    let test = "a_signal_takes_the_temporary_name_away";
    let dir = run(SPANS);
    let output = dir.path().join("out.json.gz");
    for signal in [Signal::INT, Signal::TERM] {
        // Without /proc there are no files without a name.
        let script = r#"exec "$0" -q --threads 1 -o "$1" "$2""#;
        let Some(mut merge) = without_proc(test, script) else {
            return;
        };
        merge.arg(trace_merge().get_program());
        merge.args([&output, dir.path()]);
        let mut child = merge.stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && names(dir.path()).len() == 1 {
            sleep(Duration::from_millis(1));
        }
        let temporary = names(dir.path()).concat();
        let is_named = temporary.contains("out.json.gz.") && temporary.contains(".tmp");
        assert!(is_named, "{temporary}");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
        assert_eq!(names(dir.path()), ["fragments"]);
    }
}
