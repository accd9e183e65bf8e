//! The progress bar: only on a terminal, and only after a second.

use crate::invocation::trace_merge;
use crate::output::run;
use crate::usage::mkfifo;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Enough to fill a pipe, so that a merge takes as long as its reader.
const SPANS: u64 = 2_000;

/// Returns a merge with colors, if the terminal supports them.
fn colored(options: &[&str]) -> Command {
    let mut command = trace_merge();
    command.env_remove("NO_COLOR").args(options);
    command
}

/// Runs a command that merges into a pipe, and returns its output on a terminal: first until the
/// pipe is read, and then until the merge ends. The pipe is read after `delay`, and not before the
/// output contains `words`.
fn terminal_output(command: &mut Command, delay: Duration, words: &str) -> [String; 2] {
    let dir = run(SPANS);
    let pipe = dir.path().join("pipe");
    mkfifo(&pipe);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let mut user = File::options();
    let user = user.read(true).write(true).custom_flags(libc::O_NOCTTY);
    let user = user.open(name.to_str().unwrap()).unwrap();
    command.arg("-o").args([&pipe, dir.path()]);
    command.env("TERM", "xterm");
    command.stdin(user.try_clone().unwrap()).stderr(user);
    let mut child = command.spawn().unwrap();
    // The terminal closes when the last process with an open descriptor ends.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let output = Mutex::new(Vec::new());
    let so_far = || String::from_utf8_lossy(&output.lock().unwrap()).into_owned();
    let waiting = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut terminal = File::from(terminal);
            let mut bytes = [0; 4096];
            // The read fails when nobody has the terminal open any more.
            while let Ok(count @ 1..) = terminal.read(&mut bytes) {
                output.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        sleep(delay);
        let end = Instant::now() + Duration::from_secs(60);
        while !so_far().contains(words) && Instant::now() < end {
            sleep(Duration::from_millis(20));
        }
        let waiting = so_far();
        let trace = std::fs::read(&pipe).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(trace.ends_with(b"]}\n"));
        waiting
    });
    [waiting, so_far()]
}

/// Returns a job of a shell that controls the terminal.
fn job(script: &str) -> Command {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "bash", "-c", script]);
    command.arg(trace_merge().get_program());
    command
}

#[test]
fn a_merge_in_the_background_leaves_the_terminal_alone() {
    if Command::new("setsid").arg("--version").output().is_err() {
        eprintln!("SKIPPED a_merge_in_the_background_leaves_the_terminal_alone: no setsid");
        return;
    }
    let [_, shown] = terminal_output(&mut job(r#"set -m; "$0" "$@""#), Duration::ZERO, "MB/s");
    assert!(shown.contains("MB/s"), "{shown:?}");
    let [_, hidden] = terminal_output(&mut job(r#"set -m; "$0" "$@" & wait $!"#), LONG, "");
    assert!(!hidden.contains("MB/s"), "{hidden:?}");
    assert!(!hidden.contains('\u{1b}'), "{hidden:?}");
    assert!(hidden.contains("2000 events"), "{hidden:?}");
}

const LONG: Duration = Duration::from_millis(1700);

#[test]
fn a_long_merge_shows_a_bar_on_a_terminal() {
    // Two of the three passes are done; the third waits for the reader.
    let done = " 66%, ";
    let [waiting, output] = terminal_output(&mut colored(&[]), Duration::ZERO, done);
    let is_waiting = waiting.contains(done) && !waiting.contains("100%");
    assert!(is_waiting, "{waiting:?}");
    for words in ["2,000 events", "MB/s", " left", "━", "\u{1b}[36m"] {
        assert!(output.contains(words), "{words}: {output:?}");
    }
    let report = output.rfind("2000 events").unwrap();
    assert!(output.rfind("MB/s").unwrap() < report, "{output:?}");
    let is_erased = output[..report].contains("\u{1b}[2K");
    assert!(is_erased, "{output:?}");
}

#[test]
fn no_color_means_plain_characters() {
    let mut plain = trace_merge();
    plain.env("NO_COLOR", "1").args(["--last", "1h"]);
    let [_, output] = terminal_output(&mut plain, Duration::ZERO, "MB/s");
    assert!(
        output.contains("MB/s") && output.contains('['),
        "{output:?}"
    );
    assert!(
        output.is_ascii() && !output.contains("\u{1b}[3"),
        "{output:?}"
    );
}

#[test]
fn a_short_or_quiet_merge_shows_none() {
    for (delay, options) in [(Duration::ZERO, &[][..]), (LONG, &["--quiet"])] {
        let [_, output] = terminal_output(&mut colored(options), delay, "");
        assert!(!output.contains("MB/s"), "{options:?}: {output:?}");
        assert_eq!(
            output.is_empty(),
            options.contains(&"--quiet"),
            "{output:?}"
        );
    }
}
