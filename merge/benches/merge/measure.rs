//! Measures merges and `cat` alternately, then memory and CPU time, and checks that the merge lost nothing.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::process::{Usage, timed, watched};
use measure::scratch;
use serde_json::Value;

use crate::input::{self, Form, Input};
use crate::lines::Counts;

/// Maximum memory of a merge without links of requests, for inputs of any size.
const MAX_MIB: f64 = 64.0;

/// Size of an input, and the number of rounds.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) megabytes: u64,
    pub(crate) rounds: usize,
}

/// Merges an input and prints `RESULT merge_<input> <MB_per_s> <ratio_to_cat> <peak_anonymous_MB>`. With `--sort` it prints
/// `RESULT sort <MB_per_s> <ratio_to_cat> <CPU_s_per_GB> <peak_anonymous_MB>`.
pub(crate) fn merge(form: Form, options: &[&str], effort: Effort) -> Result<(), String> {
    let input = input::open(form, effort.megabytes)?;
    let Measured {
        speed,
        ratio,
        usage,
    } = Measured::new(&input, options, effort.rounds)?;
    let cpu_s = usage.cpu_s / (input.bytes as f64 / 1e9);
    let peak = usage.peak_anonymous_bytes as f64 / 1e6;
    match options.is_empty() {
        true => println!(
            "RESULT merge_{} {speed:.0} {ratio:.3} {peak:.1}",
            form.name()
        ),
        false => println!("RESULT sort {speed:.0} {ratio:.3} {cpu_s:.2} {peak:.1}"),
    }
    Ok(())
}

/// Merges 1,000 MB and then `megabytes` MB of each input, and prints `RESULT memory_<input>_<MB> <peak_anonymous_MiB>`.
pub(crate) fn memory(megabytes: u64) -> Result<(), String> {
    let mut sizes = vec![megabytes.min(1_000), megabytes];
    sizes.dedup();
    for (form, megabytes) in Form::ALL
        .iter()
        .flat_map(|form| sizes.iter().map(move |size| (*form, *size)))
    {
        let input = input::open(form, megabytes)?;
        let scratch = scratch()?;
        let merged = scratch.path().join("merged.json");
        let usage = watched(merge_command(&input, &merged, &[]))?;
        let mib = usage.peak_anonymous_bytes as f64 / f64::from(1 << 20);
        let within = if mib < MAX_MIB { "within" } else { "BEYOND" };
        println!("{}, {megabytes} MB: {within} {MAX_MIB} MiB", form.name());
        println!("RESULT memory_{}_{megabytes} {mib:.1}", form.name());
    }
    Ok(())
}

/// Results of one kind of merge.
struct Measured {
    /// MB of input for each second of the best round.
    speed: f64,
    /// Best round as a multiple of the best `cat`.
    ratio: f64,
    usage: Usage,
}

impl Measured {
    fn new(input: &Input, options: &[&str], rounds: usize) -> Result<Measured, String> {
        let scratch = scratch()?;
        let [merged, joined] = ["merged.json", "joined"].map(|name| scratch.path().join(name));
        let command = |report: &str| {
            let mut command = merge_command(input, &merged, options);
            command.args(["--report", report]);
            command
        };
        check(command("json"), &input.counts)?;
        let (mut best, mut best_cat) = (Duration::MAX, Duration::MAX);
        for round in 0..rounds {
            eprintln!("{} {options:?} {}/{rounds}", input.form.name(), round + 1);
            remove(&merged)?;
            best_cat = timed(cat_command(input, &joined)?)?.min(best_cat);
            remove(&joined)?;
            best = timed(command("none"))?.min(best);
        }
        let mut usage = Usage {
            cpu_s: f64::INFINITY,
            ..Usage::default()
        };
        for _ in 0..3 {
            remove(&merged)?;
            let used = watched(command("none"))?;
            usage.cpu_s = usage.cpu_s.min(used.cpu_s);
            usage.peak_anonymous_bytes = usage.peak_anonymous_bytes.max(used.peak_anonymous_bytes);
        }
        let (best_s, cat_s) = (best.as_secs_f64(), best_cat.as_secs_f64());
        println!(
            "{} {options:?}: {best_s:.3} s, cat {cat_s:.3} s, {:.2} CPU s",
            input.form.name(),
            usage.cpu_s
        );
        Ok(Measured {
            speed: input.bytes as f64 / 1e6 / best_s,
            ratio: best_s / cat_s,
            usage,
        })
    }
}

/// Merges once and compares the report with the counts, because the speed of a merge that loses events is worthless.
pub(crate) fn check(mut command: Command, counts: &Counts) -> Result<Value, String> {
    let output = command.output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {stderr}", output.status));
    }
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let found = |phase: &char| {
        report["events_by_phase"][phase.to_string()]
            .as_u64()
            .unwrap_or(0)
    };
    let is_complete = counts.iter().all(|(phase, count)| found(phase) == *count);
    match is_complete && report["damage_total"] == 0 {
        true => Ok(report),
        false => Err(format!(
            "{command:?}: generated {counts:?}, merged {}; damage: {}",
            report["events_by_phase"], report["damage_by_kind"]
        )),
    }
}

fn merge_command(input: &Input, output: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-merge"));
    command.args(options).arg("--output").arg(output);
    match input.form {
        Form::Kineto => command.args(&input.files),
        _ => command.arg(&input.directory),
    };
    command.stdin(Stdio::null());
    command
}

fn cat_command(input: &Input, output: &Path) -> Result<Command, String> {
    let file = File::create(output).map_err(|error| format!("{}: {error}", output.display()))?;
    let mut command = Command::new("cat");
    command.args(&input.files).stdin(Stdio::null()).stdout(file);
    Ok(command)
}

/// Removes an output, so that overwriting it does not slow down the next round.
fn remove(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display())),
        false => Ok(()),
    }
}
