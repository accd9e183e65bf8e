//! Folders that cannot hold temporary files: missing, read-only, or full. A trace is written in
//! spite of that.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::many_spans::many;
use crate::trace::Trace;
use crate::usage::merges;
use std::path::Path;
use std::process::Command;

const MESSAGE: &str = "overlapping spans stay on their thread, where viewers drop them, because of an error: temporary file in";

/// Options for a sorted trace. Its path follows.
const SORT: [&str; 4] = ["--sort", "--memory", "10KiB", "-o"];

/// Returns a merge with this folder for temporary files.
fn merge_with(dir: &RunDir, folder: &Path) -> Command {
    let mut command = trace_merge();
    command.env("TMPDIR", folder).arg(dir.path());
    command
}

/// Asserts that every span is in the trace, on its own thread, and that the report states the
/// reason.
fn assert_left(ended: &Ended, count: usize, why: &str) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let trace = Trace::parse(&ended.stdout);
    assert_eq!(trace.phase("X").len(), count, "{why}");
    assert!(trace.shown().all(|event| event["tid"] == 903), "{why}");
    let names = trace.thread_names();
    let is_lane = |name: &String| name.contains("overlapping");
    assert!(!names.values().any(is_lane), "{why}: {names:?}");
    let message = ended.stderr.lines().find(|line| line.starts_with(MESSAGE));
    let has_reason = message.is_some_and(|message| message.contains(why));
    assert!(has_reason, "{why}: {}", ended.stderr);
}

#[test]
fn without_a_temporary_folder_files_are_next_to_the_trace() {
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
fn without_temporary_files_spans_stay_and_traces_cannot_be_sorted() {
    let (dir, count) = many();
    let nowhere = Path::new("/nowhere");
    let ended = Ended::run(merge_with(&dir, nowhere).args(["-o", "-"]));
    assert_left(&ended, count, "/nowhere: No such file");
    let refused = Ended::run(merge_with(&dir, nowhere).args(SORT).arg("-"));
    let message = "trace-merge: temporary file in /nowhere: No such file";
    assert!(refused.stderr.contains(message), "{}", refused.stderr);
    assert!(refused.code == 2 && refused.stdout.is_empty());
    let merge = merge_with(&dir, &std::env::temp_dir());
    let mut command = Command::new("sh");
    // The standard output is a pipe, which has no limit.
    command
        .args(["-c", r#"trap "" XFSZ; ulimit -f 2000; exec "$0" "$@""#])
        .arg(merge.get_program())
        .args(merge.get_args())
        .args(["-o", "-"]);
    assert_left(&Ended::run(&mut command), count, "File too large");
}
