//! Runs the `trace-merge` binary.

use crate::trace::Trace;
use flate2::Compression;
use flate2::write::GzEncoder;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the binary without the caller's profiling variables.
pub(crate) fn trace_merge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-merge"));
    for name in ["DIR", "OUTPUT", "RUN", "MAIN_PID", "LEVEL"] {
        command.env_remove(format!("SA_PROFILE_{name}"));
    }
    command.stdin(Stdio::null());
    command
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    /// Runs `command` to its end; a panic or a signal fails the test.
    pub(crate) fn run(command: &mut Command) -> Ended {
        Ended::run_with_streams(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Runs `command` with its own streams.
    pub(crate) fn run_with_streams(command: &mut Command) -> Ended {
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        let code = output.status.code();
        Ended {
            code: code.unwrap_or_else(|| panic!("{}: {stderr}", output.status)),
            stdout: output.stdout,
            stderr,
        }
    }

    /// Parses the report that `--report json` printed.
    pub(crate) fn report(&self) -> Report {
        let report = serde_json::from_slice(&self.stdout);
        Report(report.unwrap_or_else(|error| panic!("{error}: {self:?}")))
    }
}

/// A JSON report.
#[derive(Clone, Debug)]
pub(crate) struct Report(pub(crate) Value);

impl Report {
    /// Returns the integer at `key`.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.0[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} in {}", self.0))
    }

    /// Returns every damage as (file name, byte offset, kind), sorted.
    pub(crate) fn damage(&self) -> Vec<(String, u64, String)> {
        let entries = self.0["damage"].as_array().unwrap().iter();
        let mut all: Vec<_> = entries.map(damage_entry).collect();
        all.sort();
        all
    }

    /// Returns the number of damages of `kind`, from `damage_by_kind`.
    pub(crate) fn kind(&self, kind: &str) -> u64 {
        self.0["damage_by_kind"][kind].as_u64().unwrap_or(0)
    }

    /// Returns the number of events of phase `phase`.
    pub(crate) fn phase(&self, phase: &str) -> u64 {
        self.0["events_by_phase"][phase].as_u64().unwrap_or(0)
    }
}

fn damage_entry(entry: &Value) -> (String, u64, String) {
    let text = |key: &str| entry[key].as_str().unwrap().to_owned();
    let file = text("file").rsplit('/').next().unwrap().to_owned();
    (file, entry["offset"].as_u64().unwrap(), text("kind"))
}

/// Compresses a text as one gzip member.
pub(crate) fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Returns a fragment of a process with one block of these lines.
pub(crate) fn one_block(process: &Process, lines: &[impl AsRef<str>]) -> Fragment {
    let mut fragment = process.fragment();
    fragment.block(1, 0, &stream(lines));
    fragment
}

/// A run directory to write fragments into.
pub(crate) struct RunDir {
    folder: tempfile::TempDir,
}

impl RunDir {
    pub(crate) fn new() -> RunDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("fragments")).unwrap();
        RunDir { folder }
    }

    /// Creates a run with this fragment only.
    pub(crate) fn with_fragment(fragment: &Fragment) -> RunDir {
        let dir = RunDir::new();
        fragment.write_here(&dir.fragments());
        dir
    }

    /// Creates a run of a process whose fragment has one block of these lines.
    pub(crate) fn with_block(process: &Process, lines: &[impl AsRef<str>]) -> RunDir {
        RunDir::with_fragment(&one_block(process, lines))
    }

    /// Creates a run with lines of another recorder, in the fragment `trace.<name>.jsonl`.
    pub(crate) fn with_lines(name: &str, lines: &[impl AsRef<str>]) -> RunDir {
        let dir = RunDir::new();
        dir.put(name, &stream(lines));
        dir
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn fragments(&self) -> PathBuf {
        self.path().join("fragments")
    }

    /// Writes `content` as the fragment `trace.<name>.jsonl`.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.fragments().join(format!("trace.{name}.jsonl"));
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Merges the directory into its `trace.json` with a JSON report.
    pub(crate) fn merge(&self) -> Merged {
        Merged::new(&[], &[self.path()])
    }
}

/// Result of a merge that succeeded.
pub(crate) struct Merged {
    pub(crate) trace: Trace,
    pub(crate) bytes: Vec<u8>,
    pub(crate) report: Report,
}

impl Merged {
    /// Merges `paths` with `options` and `--report json`, and reads the trace.
    pub(crate) fn new(options: &[&str], paths: &[&Path]) -> Merged {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.json");
        let mut merge = trace_merge();
        merge.args(options).args(paths);
        let ended = Ended::run(merge.args(["--report", "json", "-o"]).arg(&output));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let bytes = std::fs::read(&output).unwrap();
        Merged {
            trace: Trace::parse(&bytes),
            bytes,
            report: ended.report(),
        }
    }
}
