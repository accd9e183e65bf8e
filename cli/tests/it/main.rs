//! `sa-profile` as its users run it, on processes that really record.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod hidden;
mod host;
mod modes;
mod newest;
mod out_of_memory;
mod report;
mod snapshot;
mod sql;
mod status;
mod switch;
mod usage;

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sa-profile");

/// How a command ended and what it said; the directory is DIR in both.
#[derive(Debug, PartialEq)]
struct Finished {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a command on a directory.
fn run(words: &[&str], directory: &Path) -> Finished {
    let output = command(words).arg(directory).output().unwrap();
    said(output, directory)
}

/// A command in an environment of its own.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).env_clear();
    command
}

fn said(output: Output, directory: &Path) -> Finished {
    let directory = directory.display().to_string();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(&directory, "DIR");
    Finished {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}
