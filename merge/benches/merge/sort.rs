//! What it costs to sort a trace: `cargo bench -p trace-merge --bench merge -- [--quick] sort`.
//!
//! Merges our own fragments with `--sort` in its usual memory, and gives them to `cat`, each ten times in turn. Prints a line
//! `RESULT sort <MB_per_s> <ratio_to_cat> <CPU_s_per_GB> <peak_anonymous_MB>`; the CPU time is that of a merge to a file, as everything here.

use std::process::Command;

use crate::input::{self, Form};
use crate::measure::{Scratch, best, cat_command, check, median, merge_command, remove};
use crate::process;

/// The most times of `cat` that sorting may take.
const MOST_RATIO: f64 = 3.0;

/// Measures so many rounds of so many MB.
pub(crate) fn measure(megabytes: u64, rounds: u32) -> Result<(), String> {
    let input =
        input::open(Form::Own, megabytes).map_err(|error| format!("generating: {error}"))?;
    let sorted = Scratch(input.directory.with_extension("sorted.json"));
    let joined = Scratch(input.directory.with_extension("joined"));
    let sort = |report: &str| -> Command {
        let mut command = merge_command(&input, &sorted.0, report);
        command.arg("--sort");
        command
    };
    check(&input, sort("json"))?;
    let (mut merge, mut cat) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("sort {}/{rounds}", round + 1);
        remove(&sorted.0)?;
        cat.push(process::timed(cat_command(&input, &joined.0)?)?);
        remove(&joined.0)?;
        merge.push(process::timed(sort("none"))?);
    }
    remove(&sorted.0)?;
    let usage = process::watched(sort("none"))?;
    let (merge_s, ratio) = (best(&merge), best(&merge) / best(&cat));
    println!(
        "\nsorted: best {merge_s:.3} s, median {:.3} s; cat: best {:.3} s, median {:.3} s; at most {MOST_RATIO} times cat: {}",
        median(&merge),
        best(&cat),
        median(&cat),
        if ratio <= MOST_RATIO { "yes" } else { "NO" }
    );
    let bytes = input.bytes as f64;
    println!(
        "RESULT sort {:.0} {ratio:.3} {:.2} {:.1}",
        bytes / 1e6 / merge_s,
        usage.cpu_s / (bytes / 1e9),
        usage.peak_anonymous_bytes as f64 / 1e6
    );
    Ok(())
}
