//! What it costs to split a trace: `cargo bench -p trace-merge --bench merge -- split [MB]`.
//!
//! Merges so many MB of our own fragments (300 by default, kept under `target/tmp`) into one file and into parts of a sixth of that, five times in turn.
//! Prints a line `RESULT split <MB of input per s> <times the whole merge> <least part but the last, of what was asked for> <peak anonymous MB>`.

use std::path::Path;
use std::process::Command;

use crate::input::{self, Form};
use crate::measure::{Scratch, best, load_average, merge_command, remove};
use crate::process;

const ROUNDS: u32 = 5;
const PARTS: u64 = 6;

/// Measures a run of the size that the words give.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let megabytes: u64 = match words {
        [] => 300,
        [megabytes] => megabytes
            .parse()
            .map_err(|_| format!("split: expected a number of MB, found {megabytes}"))?,
        _ => return Err(format!("split: expected one number of MB, found {words:?}")),
    };
    let input =
        input::open(Form::Own, megabytes).map_err(|error| format!("generating: {error}"))?;
    let whole = Scratch(input.directory.with_extension("whole.json"));
    let parted = input.directory.with_extension("parted.json");
    let asked = megabytes * 1_000_000 / PARTS;
    let split = |report: &str| {
        let mut command = merge_command(&input, &parted, report);
        command.arg(format!("--split={}kB", asked / 1_000));
        command
    };
    let parts = parts(split("json"))?;
    let _scratch: Vec<Scratch> = parts.iter().map(|(path, _)| Scratch(path.into())).collect();
    println!("load average before: {}", load_average());
    let (mut of_whole, mut of_parts) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        eprintln!("split {}/{ROUNDS}", round + 1);
        remove(&whole.0)?;
        of_whole.push(process::timed(merge_command(&input, &whole.0, "none"))?);
        for (path, _) in &parts {
            remove(Path::new(path))?;
        }
        of_parts.push(process::timed(split("none"))?);
    }
    let usage = process::watched(split("none"))?;
    println!("load average after:  {}", load_average());
    let full = &parts[..parts.len().saturating_sub(1)];
    let least = full.iter().map(|(_, bytes)| *bytes).min().unwrap_or(0);
    let best_s = best(&of_parts);
    println!("{megabytes} MB in {} parts, best of {ROUNDS}", parts.len());
    println!(
        "RESULT split {:.0} {:.2} {:.3} {:.1}",
        input.bytes as f64 / 1e6 / best_s,
        best_s / best(&of_whole),
        least as f64 / asked as f64,
        usage.peak_anonymous_bytes as f64 / 1e6
    );
    Ok(())
}

/// Splits, and gives the paths and lengths of the parts.
fn parts(mut command: Command) -> Result<Vec<(String, u64)>, String> {
    let done = command.output();
    let done = done.map_err(|error| format!("{command:?}: {error}"))?;
    let report: serde_json::Value = serde_json::from_slice(&done.stdout)
        .map_err(|error| format!("{command:?}: report: {error}"))?;
    let parts = report["parts"].as_array().ok_or("report: no parts")?;
    let part = |part: &serde_json::Value| {
        let path = part["path"].as_str()?.to_owned();
        Some((path, part["text_bytes"].as_u64()?))
    };
    let parts: Option<Vec<_>> = parts.iter().map(part).collect();
    parts.ok_or_else(|| "report: a part without path or length".to_owned())
}
