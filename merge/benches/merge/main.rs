//! How fast a merge is, against `cat` of the same files: `cargo bench -p trace-merge --bench merge [-- [--quick] [--links] [own] [foreign] [served] [sort]]`.
//!
//! Generates once 1 GB of our own fragments and 1 GB in pypto-serving's form (8 files each, kept under `target/tmp`), then takes the best of
//! ten merges and of ten `cat` into a file on the same file system, in turn. Prints a table and, last, lines
//! `RESULT merge_<input> <MB_per_s> <ratio_to_cat> <peak_anonymous_MB>`. Times are rebased and ids remapped, as in every merge.
//! `-- peers` measures what else joins fragments, on 100 MB: `RESULT merge_<input>_by_<peer> <MB_per_s> <times_trace_merge>`.
//! `-- validators` prints `RESULT validate_<input>_<validator> <MB_per_s> <ns_per_line>`.
//! `-- window [MB]` measures windows of a long run instead, `-- gzip [MB]` compressed traces, `-- split [MB]` traces in parts, `-- events [MB]` what reads events, `-- memory [MB]` the memory that a merge
//! of as much takes. With `sort`, and where nothing is named, it also measures traces in the order of their times: `RESULT sort …`.
//!
//! With `--links` it merges in turn with and without links of requests, and prints `RESULT links_<input> <wall_ratio> <CPU_ratio>` of the two too. The
//! input `served`, requests served in batches of 16, is measured only if it is named.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are this program's output"
)]

mod events;
mod foreign;
mod gzip;
mod input;
mod lines;
mod long;
mod measure;
mod memory;
mod own;
mod peers;
mod process;
mod served;
mod sort;
mod split;
mod validators;
mod window;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let measured = match words.split_first() {
        Some((&"window", rest)) => window::run(rest),
        Some((&"gzip", rest)) => gzip::run(rest),
        Some((&"split", rest)) => split::run(rest),
        Some((&"events", rest)) => events::run(rest),
        Some((&"memory", rest)) => memory::run(rest),
        _ => measure::run(&words),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("merge: {error}");
            ExitCode::FAILURE
        }
    }
}
