//! How fast a compressed trace is written: `cargo bench -p trace-merge --bench merge -- gzip [MB]`.
//!
//! Merges so many MB of our own fragments (300 by default, kept under `target/tmp`) five times into a compressed file and into a plain one, and in
//! the same rounds lets `gzip -1`, and `pigz -1` and `libdeflate-gzip -1` where they are installed, compress that plain file. `gzip -t` must take what
//! the merge wrote. Prints lines `RESULT gzip_<program> <MB of text per s> <text per packed byte> <times gzip -1>`; for the merge the time
//! has everything in it, reading and merging the fragments.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::input::{self, Form, Input};
use crate::measure::{Scratch, best, load_average, merge_command, remove};
use crate::process;

const ROUNDS: u32 = 5;
const COMPRESSORS: [&str; 3] = ["gzip", "pigz", "libdeflate-gzip"];

/// One way to a compressed trace, and what it took.
struct Way {
    name: &'static str,
    rounds: Vec<Duration>,
    packed_bytes: u64,
}

/// Measures a run of the size that the words give.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let megabytes = match words {
        [] => 300,
        [megabytes] => megabytes
            .parse()
            .map_err(|_| format!("gzip: expected a number of MB, found {megabytes}"))?,
        _ => return Err(format!("gzip: expected one number of MB, found {words:?}")),
    };
    let input =
        input::open(Form::Own, megabytes).map_err(|error| format!("generating: {error}"))?;
    let plain = Scratch(input.directory.with_extension("plain.json"));
    let packed = Scratch(input.directory.with_extension("packed.json.gz"));
    println!("load average before: {}", load_average());
    let merge = ["merge_plain", "merge"];
    let installed = COMPRESSORS.into_iter().filter(|name| is_installed(name));
    let mut ways: Vec<Way> = merge.into_iter().chain(installed).map(Way::new).collect();
    for round in 0..ROUNDS {
        eprintln!("gzip {}/{ROUNDS}", round + 1);
        for way in &mut ways {
            way.go(&input, &plain.0, &packed.0)?;
        }
    }
    println!("load average after:  {}", load_average());
    print(&ways, length(&plain.0)?);
    Ok(())
}

impl Way {
    fn new(name: &'static str) -> Way {
        Way {
            name,
            rounds: Vec::new(),
            packed_bytes: 0,
        }
    }

    fn go(&mut self, input: &Input, plain: &Path, packed: &Path) -> Result<(), String> {
        let output = match self.name {
            "merge_plain" => plain,
            _ => packed,
        };
        remove(output)?;
        let command = match self.name {
            "merge" | "merge_plain" => merge_command(input, output, "none"),
            name => compressor(name, plain, output)?,
        };
        self.rounds.push(process::timed(command)?);
        self.packed_bytes = length(output)?;
        if self.name == "merge" {
            let mut test = Command::new("gzip");
            test.arg("-t").arg(output);
            process::timed(test)?;
        }
        Ok(())
    }
}

fn compressor(name: &str, plain: &Path, packed: &Path) -> Result<Command, String> {
    let file = |error| format!("{}: {error}", packed.display());
    let mut command = Command::new(name);
    command.args(["-1", "-c"]).arg(plain).stdin(Stdio::null());
    command.stdout(File::create(packed).map_err(file)?);
    Ok(command)
}

fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder: PathBuf| folder.join(name).exists());
    if !found {
        println!("{name}: not installed, not measured");
    }
    found
}

fn length(path: &Path) -> Result<u64, String> {
    let metadata = path.metadata();
    metadata.map_or_else(
        |error| Err(format!("{}: {error}", path.display())),
        |metadata| Ok(metadata.len()),
    )
}

fn print(ways: &[Way], text_bytes: u64) {
    let text = text_bytes as f64;
    let gzip = ways.iter().find(|way| way.name == "gzip");
    let gzip_s = gzip.map_or(f64::NAN, |way| best(&way.rounds));
    println!("{:.0} MB of text, best of {ROUNDS}", text / 1e6);
    for way in ways {
        let best_s = best(&way.rounds);
        println!(
            "RESULT gzip_{} {:.0} {:.2} {:.2}",
            way.name,
            text / 1e6 / best_s,
            text / way.packed_bytes as f64,
            gzip_s / best_s
        );
    }
}
