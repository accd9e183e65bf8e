//! Folders that take no temporary file: missing, none, read-only, full. They are no reason to have no trace.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::many_spans::many;
use crate::trace::Trace;
use crate::usage::merges;
use std::path::Path;
use std::process::Command;

const TOLD: &str = "overlapping spans stay on their thread, where viewers drop them, because of an error: temporary file in";

/// Options for a sorted trace, whose place follows.
const SORT: [&str; 4] = ["--sort", "--memory", "10KiB", "-o"];

/// A merge with this folder for temporary files.
fn merge_with(dir: &RunDir, folder: &Path) -> Command {
    let mut command = trace_merge();
    command.env("TMPDIR", folder).arg(dir.path());
    command
}

/// Asserts that every span is in the trace, where it was, and that the report says why.
fn assert_left(ended: &Ended, count: usize, why: &str) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let trace = Trace::parse(&ended.stdout);
    assert_eq!(trace.phase("X").len(), count, "{why}");
    assert!(trace.shown().all(|event| event["tid"] == 903), "{why}");
    let names = trace.thread_names();
    let is_of_row = |name: &String| name.contains("overlapping");
    assert!(!names.values().any(is_of_row), "{why}: {names:?}");
    let told = ended.stderr.lines().find(|line| line.starts_with(TOLD));
    let told = told.is_some_and(|told| told.contains(why));
    assert!(told, "{why}: {}", ended.stderr);
}

#[test]
fn without_a_folder_for_temporary_files_they_are_beside_the_trace() {
    let (dir, _) = many();
    let expected = dir.merge();
    assert!(expected.report.number("overlapping_spans") > 1_000);
    let output = dir.path().join("out.json");
    for folder in ["/nowhere", "/proc"] {
        let mut command = trace_merge();
        command.env("TMPDIR", folder).arg(dir.path());
        let ended = merges(command.args(["--report", "json", "-o"]).arg(&output));
        assert!(ended.report().0.get("rows_failed").is_none(), "{folder}");
        assert!(std::fs::read(&output).unwrap() == expected.bytes);
        std::fs::remove_file(&output).unwrap();
    }
    let mut command = trace_merge();
    command.env("TMPDIR", "/nowhere").args(SORT).arg(&output);
    merges(command.arg(dir.path()));
    assert!(output.exists());
}

#[test]
fn without_any_folder_for_temporary_files_spans_stay_and_no_trace_is_sorted() {
    let (dir, count) = many();
    let nowhere = Path::new("/nowhere");
    let ended = Ended::of(merge_with(&dir, nowhere).args(["-o", "-"]));
    assert_left(&ended, count, "/nowhere: No such file");
    let refused = Ended::of(merge_with(&dir, nowhere).args(SORT).arg("-"));
    let told = "trace-merge: temporary file in /nowhere: No such file";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
    assert!(refused.code == 2 && refused.stdout.is_empty());
    let merge = merge_with(&dir, &std::env::temp_dir());
    let mut command = Command::new("sh");
    // The standard output is a pipe, which has no limit.
    command
        .args(["-c", r#"trap "" XFSZ; ulimit -f 2000; exec "$0" "$@""#])
        .arg(merge.get_program())
        .args(merge.get_args())
        .args(["-o", "-"]);
    assert_left(&Ended::of(&mut command), count, "File too large");
}
