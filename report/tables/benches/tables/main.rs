//! Measures the cost of tables: `cargo bench --profile dist -p trace-tables --bench tables [-- MB | PATH]`.
//!
//! Generates two inputs with that many MB (1,500 by default), and keeps them in `target/tmp`: a run with fragments of eight processes, as in the merge's
//! benchmark, and the trace of the report's benchmark, which has to be converted to a recording first. Writes the tables of each input three times, each time in
//! a separate process. Prints for both
//! `RESULT tables_<input>_<MB> <MB of JSON per CPU s> <peak anonymous MiB> <Parquet as % of the JSON> <CPU as a multiple of reading the events>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

#[path = "../../../benches/report/generate.rs"]
mod generate;
#[path = "../../../../merge/benches/merge/lines.rs"]
mod lines;
#[path = "../../../../merge/benches/merge/own.rs"]
#[expect(dead_code, reason = "the merge's benchmark has long runs, too")]
mod own;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::Child;
use measure::process::watched;
use trace_merge::{Options, Progress, events};
use trace_tables::{TablesOptions, write_tables};

const ROUNDS: u32 = 3;
const MEGABYTES: u64 = 1_500;
const PROCESSES: u32 = 8;
/// Version of the generators. It has to be incremented for each change of their output.
const GENERATION: u32 = 2;
/// Argument to write the tables of one input in a process that is measured.
const TABLES: &str = "--tables";
/// Argument to only read the events of one input.
const READ: &str = "--read";

fn main() -> ExitCode {
    let args = measure::words();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let generated = |megabytes: u64| {
        measure("run", &run(megabytes).map_err(|error| error.to_string())?)?;
        measure("trace", &generate::trace(megabytes)?)
    };
    measure::exit_code(match args.as_slice() {
        [TABLES, path, to] => tables(path, to),
        [READ, path] => read(path),
        [] => generated(MEGABYTES),
        [arg] => match arg.parse() {
            Ok(megabytes) => generated(megabytes),
            Err(_) => measure("given", Path::new(arg)),
        },
        _ => Err(format!("expected MB, a run or a trace, found {args:?}")),
    })
}

/// Returns the path of a run with this size in MB. Generates the run if it does not exist.
fn run(megabytes: u64) -> io::Result<PathBuf> {
    let folder = format!("tables-run-{GENERATION}-{megabytes}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    if !folder.exists() {
        let part = folder.with_extension("part");
        std::fs::create_dir_all(&part)?;
        for process in 0..PROCESSES {
            own::write(
                &part,
                process,
                megabytes * 1_000_000 / u64::from(PROCESSES),
                &mut [],
            )?;
        }
        std::fs::rename(&part, &folder)?; // This is the last step, so that an interrupted generation starts again.
    }
    Ok(folder)
}

/// Returns the size of a file, or of all files below a folder.
fn bytes_of(path: &Path) -> io::Result<u64> {
    if path.is_file() {
        return Ok(path.metadata()?.len());
    }
    std::fs::read_dir(path)?
        .map(|entry| bytes_of(&entry?.path()))
        .sum()
}

fn measure(input: &str, path: &Path) -> Result<(), String> {
    let message = |error: io::Error| error.to_string();
    let json = bytes_of(path).map_err(message)? as f64;
    let to = measure::scratch()?;
    let (path, folder) = (path.to_string_lossy(), to.path().to_string_lossy());
    let (mut cpu_s, mut read_cpu_s, mut peak) = (f64::MAX, f64::MAX, 0);
    for _ in 0..ROUNDS {
        let used = watched(Child::new([TABLES, &path, &folder])?.into_command())?;
        cpu_s = cpu_s.min(used.cpu_s);
        peak = peak.max(used.peak_anonymous_bytes);
        let used = watched(Child::new([READ, &path])?.into_command())?;
        read_cpu_s = read_cpu_s.min(used.cpu_s);
    }
    println!(
        "RESULT tables_{input}_{:.0} {:.0} {:.0} {:.2} {:.2}",
        json / 1e6,
        json / 1e6 / cpu_s,
        peak as f64 / f64::from(1 << 20),
        bytes_of(to.path()).map_err(message)? as f64 / json * 100.0,
        cpu_s / read_cpu_s
    );
    Ok(())
}

/// Writes the tables of one input, which must have slices and no damage.
fn tables(path: &str, to: &str) -> Result<(), String> {
    let options = Options::new([PathBuf::from(path)]);
    let tables = TablesOptions {
        to: PathBuf::from(to),
        force: true,
        ..TablesOptions::default()
    };
    let written = write_tables(&options, &tables, &Progress::default());
    let (written, report) = written.map_err(|error| error.to_string())?;
    match written.slices > 0 && report.damage.total == 0 {
        true => Ok(()),
        false => Err(format!("{written:?}")),
    }
}

/// Counts the events of one input.
fn read(path: &str) -> Result<(), String> {
    let options = Options {
        settle: false,
        ..Options::new([PathBuf::from(path)])
    };
    let mut count = 0_u64;
    let read = events::read(&options, &Progress::default(), |events| {
        events.match_spans()?;
        events.fold(
            || 0,
            |in_chunk, _| *in_chunk += 1,
            |in_chunk: u64| {
                count += in_chunk;
                Ok(())
            },
        )
    });
    read.map_err(|error| error.to_string())?;
    match count > 0 {
        true => Ok(()),
        false => Err("no event".to_owned()),
    }
}
