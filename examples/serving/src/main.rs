//! A small serving program that is recorded: HTTP API process, engine core and tensor-parallel workers.
//!
//! ```text
//! launcher ── HTTP ──► serving-api ── Unix socket ──► engine-core ── Unix sockets ──► worker-0 … worker-N
//!    │ control sockets (ready, step marks, stop)          scheduler, KV blocks          kernels
//!    └─────────────── to each of them ───────────────────────────────────────────────────────┘
//! ```
//!
//! There is one binary: the launcher starts the other processes by executing itself with a role. Every process records into its own
//! fragment. At the end the launcher merges the fragments into one trace.

mod api;
mod child;
mod client;
mod completion;
mod control;
mod engine;
mod launcher;
mod load;
mod noise;
mod options;
mod protocol;
mod tokenizer;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    match child::Child::from_args() {
        Some(Ok(child)) => child.run(),
        Some(Err(problem)) => {
            launcher::print_error(&problem);
            ExitCode::from(2)
        }
        None => launcher::main(),
    }
}
