//! What tables cost: `cargo bench --profile dist -p trace-tables --bench tables [-- MB | PATH]`.
//!
//! Generates once so many MB (1,500 by default, kept under `target/tmp`) of a run, fragments of eight processes as the merge's benchmark has them, and of a
//! trace, the one of the report's benchmark, which is made into a recording first. Writes the tables of each three times, each time in a process of its own.
//! Prints for both
//! `RESULT tables_<input>_<MB> <MB of JSON per CPU s> <peak anonymous MiB> <Parquet as % of the JSON> <CPU as a multiple of reading the events>`, and for each table
//! and column `RESULT tables_<input>_<table>[_<column>] <MB> <% of the JSON>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

#[path = "../../../benches/report/generate.rs"]
mod generate;
#[path = "../../../../merge/benches/merge/lines.rs"]
#[expect(dead_code, reason = "the merge's benchmark uses all of it")]
mod lines;
#[path = "../../../../merge/benches/merge/own.rs"]
mod own;
#[path = "../../../../merge/benches/merge/process.rs"]
#[expect(dead_code, reason = "the merge's benchmark uses all of it")]
mod process;

use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use trace_merge::{Options, Progress, events};
use trace_tables::{TablesOptions, write_tables};

const ROUNDS: u32 = 3;
const MEGABYTES: u64 = 1_500;
const PROCESSES: u32 = 8;
/// Changes whenever what is generated does.
const GENERATION: u32 = 1;
/// Has this program write the tables of one input, so that only this is measured.
const TABLES: &str = "--tables";
/// Has it read the events, and nothing else.
const READ: &str = "--read";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let generated = |megabytes: u64| {
        let failed = |error| format!("generating: {error}");
        measure("run", &run(megabytes).map_err(failed)?)?;
        measure("trace", &generate::trace(megabytes).map_err(failed)?)
    };
    let done = match words.as_slice() {
        [TABLES, path, to] => tables(path, to),
        [READ, path] => read(path),
        [] => generated(MEGABYTES),
        [word] => match word.parse() {
            Ok(megabytes) => generated(megabytes),
            Err(_) => measure("given", Path::new(word)),
        },
        _ => Err(format!(
            "expected a number of MB, a run or a trace, found {words:?}"
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("tables: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A run of so many MB, generated if it is not there.
fn run(megabytes: u64) -> io::Result<PathBuf> {
    let folder = format!("tables-run-{GENERATION}-{megabytes}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    if !folder.exists() {
        let part = folder.with_extension("part");
        std::fs::create_dir_all(&part)?;
        for process in 0..PROCESSES {
            own::write(&part, process, megabytes * 1_000_000 / u64::from(PROCESSES))?;
        }
        std::fs::rename(&part, &folder)?; // last, so that an interrupted generation starts anew
    }
    Ok(folder)
}

/// The bytes of a trace, or of the fragments of a run.
fn json_bytes(path: &Path) -> io::Result<u64> {
    if path.is_file() {
        return Ok(path.metadata()?.len());
    }
    std::fs::read_dir(path)?
        .map(|entry| json_bytes(&entry?.path()))
        .sum()
}

fn measure(input: &str, path: &Path) -> Result<(), String> {
    let json = json_bytes(path).map_err(|error| error.to_string())? as f64;
    let to = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (mut cpu_s, mut read_cpu_s, mut peak) = (f64::MAX, f64::MAX, 0);
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    for _ in 0..ROUNDS {
        let mut command = Command::new(&program);
        command.arg(TABLES).arg(path).arg(to.path());
        let used = process::watched(command)?;
        cpu_s = cpu_s.min(used.cpu_s);
        peak = peak.max(used.peak_anonymous_bytes);
        let mut command = Command::new(&program);
        command.arg(READ).arg(path);
        read_cpu_s = read_cpu_s.min(process::watched(command)?.cpu_s);
    }
    let files = files(to.path());
    let whole: u64 = files.iter().map(|(_, _, bytes)| bytes).sum();
    println!(
        "RESULT tables_{input}_{:.0} {:.0} {:.0} {:.2} {:.2}",
        json / 1e6,
        json / 1e6 / cpu_s,
        peak as f64 / f64::from(1 << 20),
        whole as f64 / json * 100.0,
        cpu_s / read_cpu_s
    );
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    for (table, path, bytes) in files {
        *parts.entry(table.clone()).or_default() += bytes;
        let file = File::open(path).map_err(|error| error.to_string())?;
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        for group in reader.metadata().row_groups() {
            for column in group.columns() {
                let name = format!("{table}_{}", column.column_path().string().replace('"', ""));
                *parts.entry(name).or_default() += column.compressed_size().unsigned_abs();
            }
        }
    }
    for (part, bytes) in parts {
        let percent = bytes as f64 / json * 100.0;
        println!(
            "RESULT tables_{input}_{part} {:.2} {percent:.2}",
            bytes as f64 / 1e6
        );
    }
    Ok(())
}

/// The files of all tables: the table, the path, the bytes.
fn files(folder: &Path) -> Vec<(String, PathBuf, u64)> {
    let entries = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for table in entries(folder) {
        let name = table.file_name().unwrap_or_default().to_string_lossy();
        for file in entries(&table).iter().flat_map(|host| entries(host)) {
            let bytes = file.metadata().map_or(0, |metadata| metadata.len());
            found.push((name.clone().into_owned(), file, bytes));
        }
    }
    found
}

/// The tables of one input, which must have what was generated.
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

/// The events of one input, counted.
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
            |of_chunk, _| *of_chunk += 1,
            |of_chunk: u64| {
                count += of_chunk;
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
