//! What it costs to read events: `cargo bench -p trace-merge --bench merge -- events [MB]`.
//!
//! Computes the total time of each name from so many MB (300 by default, kept under `target/tmp`) of our own fragments and of those in pypto-serving's
//! form, and merges them into a file, five times in turn. Prints for both
//! `RESULT events_<input> <MB of input per s> <CPU as a multiple of the merge's> <peak anonymous MB>`.

use crate::input::{self, Form, Input};
use crate::measure::{Scratch, load_average, merge_command, remove};
use crate::process::{Usage, watched};
use sa_format::Phase;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use trace_merge::{Options, Progress, events};

const ROUNDS: u32 = 5;
/// Has this program sum up a run in a process of its own, so that only this is measured.
const SUM: &str = "--sum";

/// Measures runs of the size that the words give.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let megabytes = match words {
        [SUM, directory] => return sum(directory),
        [] => 300,
        [megabytes] => megabytes
            .parse()
            .map_err(|_| format!("events: expected a number of MB, found {megabytes}"))?,
        _ => {
            return Err(format!(
                "events: expected one number of MB, found {words:?}"
            ));
        }
    };
    println!("load average before: {}", load_average());
    for form in [Form::Own, Form::Foreign] {
        let input = input::open(form, megabytes).map_err(|error| format!("generating: {error}"))?;
        measure(&input)?;
    }
    println!("load average after:  {}", load_average());
    Ok(())
}

fn measure(input: &Input) -> Result<(), String> {
    let merged = Scratch(input.directory.with_extension("merged.json"));
    let (mut cpu_s, mut merge_cpu_s, mut wall_s) = (f64::MAX, f64::MAX, f64::MAX);
    let mut peak = 0;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let usage: Usage = watched(sum_command(input)?)?;
        wall_s = wall_s.min(begin.elapsed().as_secs_f64());
        cpu_s = cpu_s.min(usage.cpu_s);
        peak = peak.max(usage.peak_anonymous_bytes);
        remove(&merged.0)?;
        let mut command = merge_command(input, &merged.0, "none");
        command.arg("--no-link-requests");
        merge_cpu_s = merge_cpu_s.min(watched(command)?.cpu_s);
    }
    println!(
        "RESULT events_{} {:.0} {:.2} {:.1}",
        input.form.name(),
        input.bytes as f64 / 1e6 / wall_s,
        cpu_s / merge_cpu_s,
        peak as f64 / 1e6
    );
    Ok(())
}

fn sum_command(input: &Input) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["events", SUM]).arg(&input.directory);
    Ok(command)
}

/// Total time per name, of which some must have been found.
fn sum(directory: &str) -> Result<(), String> {
    let options = Options {
        settle: false,
        ..Options::new([PathBuf::from(directory)])
    };
    let mut totals: HashMap<String, i64> = HashMap::new();
    let read = events::read(&options, &Progress::default(), |events| {
        events.fold(
            HashMap::<String, i64>::new,
            |of_chunk, event| {
                if event.phase != Phase::Complete {
                    return;
                }
                let name = event.name();
                match of_chunk.get_mut(&*name) {
                    Some(total) => *total += event.dur_ns,
                    None => drop(of_chunk.insert(name.into_owned(), event.dur_ns)),
                }
            },
            |of_chunk| {
                for (name, ns) in of_chunk {
                    *totals.entry(name).or_default() += ns;
                }
                Ok(())
            },
        )
    });
    read.map_err(|error| error.to_string())?;
    match totals.is_empty() {
        true => Err(format!("{directory}: no span")),
        false => Ok(()),
    }
}
