//! The progress bar: on a terminal, after a second, and only then.

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

/// A merge with colors, if the terminal may have some.
fn colored(options: &[&str]) -> Command {
    let mut command = trace_merge();
    command.env_remove("NO_COLOR").args(options);
    command
}

/// Returns the output on a terminal of a command that merges into a pipe, first until the pipe is read and then until the merge ends. The pipe is read after
/// `patience`, and not before the output contains `words`.
fn said(command: &mut Command, patience: Duration, words: &str) -> [String; 2] {
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
    // The terminal ends with the last one that has it.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let said = Mutex::new(Vec::new());
    let so_far = || String::from_utf8_lossy(&said.lock().unwrap()).into_owned();
    let waiting = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut terminal = File::from(terminal);
            let mut bytes = [0; 4096];
            // It ends with an error when the last one that has the terminal is gone.
            while let Ok(count @ 1..) = terminal.read(&mut bytes) {
                said.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        sleep(patience);
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

/// A job of a shell whose terminal it is.
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
    let [_, shown] = said(&mut job(r#"set -m; "$0" "$@""#), Duration::ZERO, "MB/s");
    assert!(shown.contains("MB/s"), "{shown:?}");
    let [_, hidden] = said(&mut job(r#"set -m; "$0" "$@" & wait $!"#), LONG, "");
    assert!(!hidden.contains("MB/s"), "{hidden:?}");
    assert!(!hidden.contains('\u{1b}'), "{hidden:?}");
    assert!(hidden.contains("2000 events"), "{hidden:?}");
}

const LONG: Duration = Duration::from_millis(1700);

#[test]
fn a_long_merge_shows_a_bar_on_a_terminal() {
    // Two of the three passes are done; the third waits for the reader.
    let done = " 66%, ";
    let [waiting, said] = said(&mut colored(&[]), Duration::ZERO, done);
    let is_waiting = waiting.contains(done) && !waiting.contains("100%");
    assert!(is_waiting, "{waiting:?}");
    for words in ["2,000 events", "MB/s", " left", "━", "\u{1b}[36m"] {
        assert!(said.contains(words), "{words}: {said:?}");
    }
    let report = said.rfind("2000 events").unwrap();
    assert!(said.rfind("MB/s").unwrap() < report, "{said:?}");
    let is_erased = said[..report].contains("\u{1b}[2K");
    assert!(is_erased, "{said:?}");
}

#[test]
fn no_color_means_plain_characters() {
    let mut plain = trace_merge();
    plain.env("NO_COLOR", "1").args(["--last", "1h"]);
    let [_, said] = said(&mut plain, Duration::ZERO, "MB/s");
    assert!(said.contains("MB/s") && said.contains('['), "{said:?}");
    assert!(said.is_ascii() && !said.contains("\u{1b}[3"), "{said:?}");
}

#[test]
fn a_short_or_quiet_merge_shows_none() {
    for (patience, options) in [(Duration::ZERO, &[][..]), (LONG, &["--quiet"])] {
        let [_, said] = said(&mut colored(options), patience, "");
        assert!(!said.contains("MB/s"), "{options:?}: {said:?}");
        assert_eq!(said.is_empty(), options.contains(&"--quiet"), "{said:?}");
    }
}
