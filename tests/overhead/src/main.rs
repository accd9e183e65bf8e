//! Measures what recording costs, next to other recorders, and writes docs/overhead.md: `cargo run --profile dist -p overhead`.
//!
//! A recorder is one per process, so every case runs in fresh child processes of this program, and the cases of a section take turns, pass by
//! pass: what else the machine does weighs on all alike. Each section is a module: its cases, the child's work, and its part of the page.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "children print their figures, and the parent its progress"
)]

mod acknowledged;
mod child;
mod cost;
mod effort;
mod footprint;
mod kill;
mod machine;
mod options;
mod ours;
mod page;
mod python;
mod scene;
mod series;
mod start;
mod subject;
mod table;
mod tails;

use std::process::ExitCode;

use clap::Parser;
use measure::neighbour;

use crate::options::{Options, Work};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.as_slice() {
        [flag, directory] if flag == neighbour::FLAG => neighbour::child(directory),
        _ => run(Options::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("overhead: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), String> {
    match &options.work {
        None => page::write(&options),
        Some(Work::Cost(task)) => cost::child(task),
        Some(Work::Tail(task)) => tails::child(task),
        Some(Work::Start) => start::child(),
        Some(Work::Footprint(task)) => footprint::child(task),
        Some(Work::Victim(task)) => kill::child(task),
    }
}
