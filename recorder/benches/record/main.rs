//! What recording costs, against the floor of two clock reads: `cargo bench -p sa-recorder --bench record [-- [--quick] [CASE]...]`.
//!
//! A recorder is one per process, so every case runs in fresh child processes of this binary, interleaved over several passes. Each round
//! measures the floor directly before and after the case in the same threads, and the ratio is taken per round: what else the machine does
//! weighs on both. Prints a table and, last, lines `RESULT <case> <ns_per_span> <ratio_to_two_clock_reads>`, medians over the rounds.
//! For the tails the two figures are p99.99 in ns and its ratio to the control's p99.99.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are this program's output"
)]

mod case;
mod child;
mod disk;
mod parent;
mod spans;
mod table;
mod tail;

use std::process::ExitCode;

use measure::neighbour;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [child::FLAG, name, rounds, directory] => child::run(name, rounds, directory),
        [tail::FLAG, kind, seconds] => tail::child(kind, seconds),
        [neighbour::FLAG, directory] => neighbour::child(directory),
        words => parent::run(words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("record: {error}");
            ExitCode::FAILURE
        }
    }
}
