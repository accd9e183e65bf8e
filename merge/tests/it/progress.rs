//! The progress bar: on a terminal, after a second, and only then.

use crate::invocation::trace_merge;
use crate::output::run;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// Enough to fill a pipe, so that a merge takes as long as its reader.
const SPANS: u64 = 2_000;

/// What a merge into a pipe says on a terminal, if the pipe's reader takes `patience` to begin.
fn said(patience: Duration, options: &[&str], no_color: bool) -> String {
    let dir = run(SPANS);
    let pipe = dir.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let stderr = File::options()
        .read(true)
        .write(true)
        .open(Path::new(name.to_str().unwrap()))
        .unwrap();
    let mut command = trace_merge();
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.args(options).arg("-o").args([&pipe, dir.path()]);
    let mut child = command.stderr(Stdio::from(stderr)).spawn().unwrap();
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        // It ends with an error when the last one that has the terminal is gone.
        let _ = File::from(terminal).read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    sleep(patience);
    let mut trace = Vec::new();
    File::open(&pipe).unwrap().read_to_end(&mut trace).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(trace.ends_with(b"]}\n"));
    reader.join().unwrap()
}

const LONG: Duration = Duration::from_millis(1700);

#[test]
fn a_long_merge_shows_a_bar_on_a_terminal() {
    let said = said(LONG, &[], false);
    for words in ["2,000 events", "MB/s", " left", "━", "\u{1b}[36m"] {
        assert!(said.contains(words), "{words}: {said:?}");
    }
    // Two of the three passes are done, and the third waits for the reader.
    assert!(said.contains(" 66%, "), "{said:?}");
    assert!(!said.contains("100%"), "{said:?}");
    let report = said.rfind("2000 events").unwrap();
    assert!(said.rfind("MB/s").unwrap() < report, "{said:?}");
    assert!(
        said[..report].contains("\u{1b}[2K"),
        "it is erased: {said:?}"
    );
}

#[test]
fn a_window_is_a_pass_of_its_own() {
    let said = said(LONG, &["--last", "1h"], false);
    // Three of four passes, less what a division cuts off.
    assert!(
        said.contains(" 74%, ") || said.contains(" 75%, "),
        "{said:?}"
    );
}

#[test]
fn no_color_means_plain_characters() {
    let said = said(LONG, &[], true);
    assert!(said.contains("MB/s") && said.contains('['), "{said:?}");
    assert!(said.is_ascii() && !said.contains("\u{1b}[3"), "{said:?}");
}

#[test]
fn a_short_or_quiet_merge_shows_none() {
    for (patience, options) in [(Duration::ZERO, &[][..]), (LONG, &["--quiet"])] {
        let said = said(patience, options, false);
        assert!(!said.contains("MB/s"), "{options:?}: {said:?}");
        assert_eq!(said.is_empty(), options.contains(&"--quiet"), "{said:?}");
    }
}
