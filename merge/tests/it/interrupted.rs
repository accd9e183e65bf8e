//! Merges that are interrupted, run without `/proc`, or cannot start threads, and the files that
//! they leave in the folder.

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
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So many that compressing them takes much longer than noticing that the trace has begun.
const SPANS: u64 = 250_000;
/// Merges started before giving up on ending one in the middle.
const ATTEMPTS: u32 = 5;

/// Returns the number of bytes that a process has written so far, or `None` if it has just ended.
fn written_bytes(pid: u32) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.parse().ok()
}

/// A way to end a merge in the middle.
struct Interruption {
    options: &'static [&'static str],
    /// Number of bytes that it has written by then.
    begun_bytes: u64,
    signal: Signal,
}

impl Interruption {
    /// Starts a merge into `output`, and returns true if the signal ended it.
    fn ends(&self, dir: &RunDir, output: &Path) -> bool {
        let mut merge = trace_merge();
        merge.args(["-q", "--threads", "1"]).args(self.options);
        let mut child = merge.arg("-o").args([output, dir.path()]).spawn().unwrap();
        let has_begun = |child: &Child| {
            written_bytes(child.id()).is_some_and(|bytes| bytes >= self.begun_bytes)
        };
        while child.try_wait().unwrap().is_none() && !has_begun(&child) {
            sleep(Duration::from_millis(1));
        }
        let _ = kill_process(Pid::from_child(&child), self.signal); // perhaps it has ended
        // A shell shows 128 plus the number of the signal, which is 130 for Ctrl-C.
        child.wait().unwrap().signal() == Some(self.signal.as_raw())
    }
}

/// Merges until one is ended in the middle, with `old` as the previous trace.
fn end_in_the_middle(dir: &RunDir, old: Option<&str>, how: &Interruption) {
    let ended = (0..ATTEMPTS).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.json.gz");
        if let Some(old) = old {
            std::fs::write(&output, old).unwrap();
        }
        let is_ended = how.ends(dir, &output);
        let left = std::fs::read_to_string(&output).ok();
        assert!(!is_ended || left.as_deref() == old);
        assert!(!is_ended || names(folder.path()).len() == usize::from(old.is_some()));
        is_ended
    });
    assert!(ended, "every merge was over before {:?} came", how.signal);
}

#[test]
fn a_merge_that_is_ended_leaves_nothing() {
    let dir = run(SPANS);
    let mut nameless = File::options();
    nameless.write(true).custom_flags(libc::O_TMPFILE);
    if let Err(error) = nameless.open(dir.path()) {
        eprintln!("SKIPPED a_merge_that_is_ended_leaves_nothing: no files without a name: {error}");
        return;
    }
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let how = Interruption {
            options: &[],
            begun_bytes: 1 << 16,
            signal,
        };
        end_in_the_middle(&dir, None, &how);
        end_in_the_middle(&dir, Some("old"), &how);
    }
    // Ends it in the second of six parts, of some 400 kB each.
    let parts = Interruption {
        options: &["--split=4MB"],
        begun_bytes: 500_000,
        signal: Signal::KILL,
    };
    end_in_the_middle(&dir, None, &parts);
}

/// Returns a shell that runs a command with `/proc` hidden. Returns `None`, with a loud message, if
/// it cannot be hidden.
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
    let mut shell = shell(then);
    shell.arg(trace_merge().get_program());
    Some(shell)
}

/// Without `/proc`, unnamed files cannot be used.
#[test]
fn without_proc_a_signal_removes_the_temporary_name() {
    let test = "without_proc_a_signal_removes_the_temporary_name";
    let script = r#"exec "$0" -q --threads 1 -o "$1" "$2""#;
    let dir = run(SPANS);
    let output = dir.path().join("out.json.gz");
    for signal in [Signal::INT, Signal::TERM] {
        let Some(mut merge) = without_proc(test, script) else {
            return;
        };
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
    let (dir, output) = (run(10), "out.json");
    for round in ["new", "there"] {
        let mut merge = without_proc(test, script).unwrap();
        let ended = Ended::run(merge.args([&dir.path().join(output), dir.path()]));
        assert_eq!(ended.code, 0, "{round}: {}", ended.stderr);
        assert_eq!(names(dir.path()), ["fragments", output], "{round}");
    }
    let trace = Trace::parse(&std::fs::read(dir.path().join(output)).unwrap());
    assert_eq!(trace.shown().count(), 10);
}

/// Starts a merge that blocks in the middle, because only the first byte is read from its pipe.
fn begun(merge: &mut Command) -> (Child, ChildStdout) {
    let mut child = merge.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    (child, stdout)
}

#[test]
fn one_signal_ends_a_blocked_merge_with_a_message() {
    let dir = run(20_000);
    for (signal, name) in [
        (Signal::INT, "SIGINT"),
        (Signal::TERM, "SIGTERM"),
        (Signal::HUP, "SIGHUP"),
    ] {
        let mut merge = trace_merge();
        merge.args(["-o", "-"]).arg(dir.path());
        let (child, _stdout) = begun(merge.stderr(Stdio::piped()));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal.as_raw()));
        let message = String::from_utf8(output.stderr).unwrap();
        let expected = format!("trace-merge: stopped by {name} before the end\n");
        assert_eq!(message, expected);
    }
}

/// Returns a full pipe, and its reader.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[0; 1]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

#[test]
fn a_signal_ends_a_merge_whose_messages_nobody_reads() {
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

/// A user without any other threads, so that a limit only counts the threads of the merge.
const UNUSED_USER: u32 = 65_533;

#[test]
fn a_merge_that_cannot_start_threads_works_or_reports_it() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED a_merge_that_cannot_start_threads_works_or_reports_it: not root");
        return;
    }
    let dir = run(50_000);
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("trace-merge");
    std::fs::copy(trace_merge().get_program(), &program).unwrap();
    let (mut refused, mut merged) = (0, 0);
    for limit in 0..12 {
        let mut merge = Command::new("bash");
        merge.args(["-c", &format!("ulimit -u {limit} && exec \"$0\" \"$@\"")]);
        merge
            .arg(&program)
            .args(["-q", "--threads", "2", "-o", "-"]);
        let output = merge
            .arg(dir.path())
            .uid(UNUSED_USER)
            .gid(UNUSED_USER)
            .output();
        let output = output.unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            assert_eq!(Trace::parse(&output.stdout).shown().count(), 50_000);
            assert_eq!(message, "");
            merged += 1;
        } else {
            assert!(message.starts_with("trace-merge: threads: "), "{message}");
            assert_eq!(output.status.code(), Some(2), "{message}");
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
    let mut with_proc = Command::new("sh");
    with_proc.args(["-c", script]);
    with_proc.arg(trace_merge().get_program());
    for mut merge in [with_proc].into_iter().chain(without_proc(test, script)) {
        let (mut child, mut stdout) = begun(merge.arg(dir.path()));
        for signal in [Signal::INT, Signal::HUP] {
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        assert!(child.wait().unwrap().success() && rest.ends_with(b"]}\n"));
    }
}
