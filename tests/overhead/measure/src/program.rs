//! The words and the end of a benchmark program.

use std::process::ExitCode;

/// Returns the words of the command line, except for the one that cargo adds.
pub fn words() -> Vec<String> {
    let words = std::env::args().skip(1);
    words.filter(|word| word != "--bench").collect()
}

/// Returns the exit code of a program, and prints its error.
#[expect(clippy::print_stderr, reason = "it is a program's error")]
pub fn exit_code(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
