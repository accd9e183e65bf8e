//! Runs for the reports in `sessions`, and paths in a report.

use crate::invocation::{RunDir, trace_merge};
use crate::links::run_of;
use crate::usage::merges;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Damaged lines of a run: more than are listed.
const DAMAGED: usize = 5_000;

/// A run with one event of each phase in one process, and a damaged fragment of another.
pub(crate) fn of_each_phase() -> RunDir {
    let process = Process {
        main: true,
        ..Process::new(80)
    };
    let on = process.main_thread();
    let lines = vec![
        on.metadata("process_name", r#""name":"api""#),
        on.span(1_000_000, 900_000, "a", ""),
        on.span(1_000_100, 5, "b", ""),
        on.instant(1_000_200, "c", ""),
        on.counter(1_000_300, "d", "\"x\":1"),
        on.flow("s", 1_000_400, "local", 1),
        on.flow("t", 1_000_500, "local", 1),
        on.flow("f", 1_000_600, "local", 1),
        on.begin(1_000_700, "e"),
        on.loss(1_000_900, "write_error", 7, ""),
    ];
    let dir = run_of(&[(process, lines)]);
    let other = Process::new(81).main_thread().span(1_000_800, 5, "f", "");
    let garbage = "garbage\n".repeat(DAMAGED);
    dir.put("81", format!("{other}\n{garbage}").as_bytes());
    dir
}

/// A run with one event, and something else: damage or a loss.
pub(crate) fn with_loss(cause: &str) -> RunDir {
    let on = Process::new(82).main_thread();
    let line = match cause {
        "none" => String::new(),
        "garbage" => cause.to_owned(),
        _ => on.loss(1_000_000, cause, 1, ""),
    };
    let mut fragment = Process::new(82).fragment();
    fragment.raw(&stream(&[on.span(1_000_000, 5, "a", ""), line]));
    RunDir::of(&fragment)
}

#[test]
fn a_path_that_is_not_utf8_is_reported() {
    let dir = of_each_phase();
    let odd = dir.path().join(OsStr::from_bytes(b"odd\xff"));
    std::fs::rename(dir.fragments(), &odd).unwrap();
    let ended = merges(trace_merge().args(["--report", "json"]).arg(&odd));
    let path = ended.report().0["inputs"][0]["path"].to_string();
    assert!(path.contains("odd\u{fffd}"), "{path}");
}
