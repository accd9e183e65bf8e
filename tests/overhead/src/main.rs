//! Measures what recording costs, next to other recorders, and prints docs/overhead.md: `cargo run --profile dist -p overhead`.
//!
//! A recorder is one per process, so every case runs in fresh child processes of this program, and the cases of a section take turns, pass by
//! pass, so that other work of the machine affects all of them. Each section is a module: its cases, the child's work, and its table. The words
//! around the tables are in `page.txt`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "children print their figures, and the parent its progress"
)]

mod acknowledged;
mod cost;
mod effort;
mod footprint;
mod kill;
mod machine;
mod page;
mod peer;
mod start;
mod subject;
mod table;
mod tails;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::effort::Effort;

/// Measures what recording costs, next to other recorders, and prints docs/overhead.md
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true)]
struct Options {
    /// Measure less: a check, no numbers to quote
    #[arg(long)]
    quick: bool,
    /// Measure next to nothing: for the tests
    #[arg(long, hide = true)]
    tiny: bool,
    #[command(subcommand)]
    work: Option<Work>,
}

/// The task of a child process.
#[derive(Debug, Subcommand)]
enum Work {
    Cost(cost::Task),
    Tail(tails::Task),
    Start,
    Footprint(footprint::Task),
    Victim(kill::Task),
}

fn main() -> ExitCode {
    let options = Options::parse();
    measure::exit_code(match options.work {
        None => {
            let effort = match (options.tiny, options.quick) {
                (true, _) => Effort::Tiny,
                (false, true) => Effort::Quick,
                (false, false) => Effort::Full,
            };
            page::print(effort)
        }
        Some(Work::Cost(task)) => cost::child(&task),
        Some(Work::Tail(task)) => tails::child(&task),
        Some(Work::Start) => start::child(),
        Some(Work::Footprint(task)) => footprint::child(&task),
        Some(Work::Victim(task)) => kill::child(&task),
    })
}
