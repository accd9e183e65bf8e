//! Programs that are not installed on every machine.

use std::io::Write;
use std::process::{Command, Stdio};

/// Exit code of scripts whose program cannot be installed.
const NOT_AVAILABLE: i32 = 3;

/// Returns what a program prints for this input, or `None` (with a message) if it cannot be installed.
#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
pub(crate) fn printed(command: &mut Command, input: &str) -> Option<String> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join(); // a command that reads no input may have ended before
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_AVAILABLE) {
        let thread = std::thread::current();
        eprint!("SKIPPED {}: {words}", thread.name().unwrap_or_default());
        return None;
    }
    assert!(output.status.success(), "{command:?}: {words}");
    Some(String::from_utf8(output.stdout).unwrap())
}
