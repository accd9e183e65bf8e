//! Directories with several runs. `tests/cases/runs.txt` tests which of them are merged.

use crate::invocation::{RunDir, trace_merge};
use crate::usage::merges;
use format_oracle::writer::Process;
use std::path::Path;

/// Ids of runs, the oldest first.
pub(crate) const RUNS: [&str; 3] = [
    "20261119-080000-aaaaaaaa",
    "20261120-080000-bbbbbbbb",
    "20261121-080000-cccccccc",
];

fn write(folder: &Path, pid: u32, run: &str, name: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let process = Process {
        run: run.into(),
        main: true,
        ..Process::new(pid)
    };
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(u64::from(pid) * 1_000_000_000));
    let at_ns = u64::from(pid) * 1_000_000_000 + 500;
    fragment.line(&process.main_thread().span(at_ns, 5, name, ""));
    fragment.write_here(folder);
}

/// Returns a directory with the newest run in place and two earlier ones in `previous`.
pub(crate) fn three_runs() -> RunDir {
    let dir = RunDir::new();
    for (pid, run, name) in [(10, RUNS[0], "oldest"), (20, RUNS[1], "middle")] {
        write(&dir.path().join("previous").join(run), pid, run, name);
    }
    write(&dir.fragments(), 30, RUNS[2], "newest");
    dir
}

/// Each earlier run of a directory needs a descriptor, so the command raises its limit as far as it
/// may.
#[test]
fn issue_19_many_earlier_runs_are_merged_at_once() {
    let dir = RunDir::new();
    for number in 0..60 {
        let run = format!("20261119-080000-{number:08}");
        let folder = dir.path().join("previous").join(&run);
        write(&folder, 100 + number, &run, "earlier");
    }
    write(&dir.fragments(), 30, RUNS[2], "newest");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", r#"ulimit -Sn 40; exec "$@""#, "sh"]);
    command.arg(trace_merge().get_program());
    command.args(["--all-runs", "--report", "json", "-o"]);
    let output = dir.path().join("out.json");
    let ended = merges(command.arg(&output).arg(dir.path()));
    assert_eq!(ended.report().number("events_total"), 61);
}
