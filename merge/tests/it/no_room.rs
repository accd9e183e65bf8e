//! Folders that take no temporary file: missing, none, read-only, full. They are no reason to have no trace.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::many_spans::many;
use crate::trace::Trace;
use std::path::Path;
use std::process::Command;

const TOLD: &str = "spans that may overlap others of their thread are left there, and viewers drop those that do: temporary file in";

/// A merge to the standard output, for which there is no other folder than `TMPDIR`.
fn to_stdout(dir: &RunDir, folder: &Path) -> Command {
    let mut command = trace_merge();
    command
        .env("TMPDIR", folder)
        .arg(dir.path())
        .args(["-o", "-"]);
    command
}

/// Asserts that every span is in the trace, where it was, and that the report says why.
fn assert_left(ended: &Ended, count: usize, why: &str) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let trace = Trace::parse(&ended.stdout);
    assert_eq!(trace.phase("X").len(), count, "{why}");
    assert!(trace.shown().all(|event| event["tid"] == 903), "{why}");
    let names = trace.thread_names();
    assert!(
        !names.values().any(|name| name.contains("overlapping")),
        "{why}: {names:?}"
    );
    let told = ended.stderr.lines().find(|line| line.starts_with(TOLD));
    assert!(
        told.is_some_and(|told| told.contains(why)),
        "{why}: {}",
        ended.stderr
    );
}

#[test]
fn without_a_folder_for_temporary_files_they_are_beside_the_trace() {
    let (dir, _) = many();
    let expected = dir.merge();
    assert!(expected.report.number("overlapping_spans") > 1_000);
    let output = dir.path().join("out.json");
    for folder in ["/nowhere", "/dev/null", "/proc"] {
        let mut command = trace_merge();
        command.env("TMPDIR", folder).arg(dir.path());
        let ended = Ended::of(command.args(["--report", "json", "-o"]).arg(&output));
        assert_eq!(ended.code, 0, "{folder}: {}", ended.stderr);
        assert!(ended.report().0.get("rows_failed").is_none(), "{folder}");
        let bytes = std::fs::read(&output).unwrap();
        assert!(bytes == expected.bytes, "{folder}");
        std::fs::remove_file(&output).unwrap();
    }
}

#[test]
fn without_any_folder_for_temporary_files_spans_stay() {
    let (dir, count) = many();
    let ended = Ended::of(&mut to_stdout(&dir, Path::new("/nowhere")));
    assert_left(&ended, count, "/nowhere: No such file");
}

#[test]
fn a_full_folder_for_temporary_files_leaves_spans_where_they_are() {
    let (dir, count) = many();
    let merge = to_stdout(&dir, &std::env::temp_dir());
    let mut command = Command::new("sh");
    // The standard output is a pipe, which has no limit.
    command
        .args(["-c", r#"trap "" XFSZ; ulimit -f 2000; exec "$0" "$@""#])
        .arg(merge.get_program())
        .args(merge.get_args());
    assert_left(&Ended::of(&mut command), count, "File too large");
}
