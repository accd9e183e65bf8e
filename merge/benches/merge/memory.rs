//! How much memory a long merge takes: `cargo bench -p trace-merge --bench merge -- memory [MB]`.
//!
//! Merges 1,000 MB and then so many (8,000 by default) of our own and of foreign fragments to a file, without `--sort`, and looks every 2 ms at the memory that is
//! no file (`RssAnon`). Prints lines `RESULT memory_<input>_<MB> <peak_anonymous_MiB>`. The inputs are kept under `target/tmp`.

use crate::input::{self, Form};
use crate::measure::{Scratch, check, merge_command, remove};
use crate::process;

const LEAST_MEGABYTES: u64 = 1_000;
/// The most memory that a merge may take, however much it merges.
const MOST_MIB: f64 = 64.0;

/// Measures the sizes that the words give.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let megabytes: u64 = match words {
        [] => 8_000,
        [megabytes] => megabytes
            .parse()
            .map_err(|_| format!("memory: expected a number of MB, found {megabytes}"))?,
        _ => {
            return Err(format!(
                "memory: expected one number of MB, found {words:?}"
            ));
        }
    };
    let mut sizes = vec![LEAST_MEGABYTES.min(megabytes), megabytes];
    sizes.dedup();
    let mut results = Vec::new();
    for form in [Form::Own, Form::Foreign] {
        for megabytes in &sizes {
            let peak_mib = peak_mib(form, *megabytes)?;
            let within = if peak_mib < MOST_MIB {
                "within"
            } else {
                "BEYOND"
            };
            println!(
                "{}, {megabytes} MB: {peak_mib:.1} MiB, {within} {MOST_MIB} MiB",
                form.name()
            );
            results.push(format!(
                "RESULT memory_{}_{megabytes} {peak_mib:.1}",
                form.name()
            ));
        }
    }
    results.iter().for_each(|result| println!("{result}"));
    Ok(())
}

/// The most anonymous memory of a merge that loses nothing, in MiB.
fn peak_mib(form: Form, megabytes: u64) -> Result<f64, String> {
    let input = input::open(form, megabytes).map_err(|error| format!("generating: {error}"))?;
    let merged = Scratch(input.directory.with_extension("merged.json"));
    check(&input, merge_command(&input, &merged.0, "json"))?;
    remove(&merged.0)?;
    let usage = process::watched(merge_command(&input, &merged.0, "none"))?;
    Ok(usage.peak_anonymous_bytes as f64 / f64::from(1 << 20))
}
