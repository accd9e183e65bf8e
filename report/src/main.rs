//! `trace-report`: reports where the time of a recorded run went.

use clap::Parser;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use trace_merge::survey::find_runs;
use trace_merge::{Error, OrExit, Progress, Runs, use_recorded_mode};
use trace_report::command::{Answer, ReportArgs};

#[global_allocator]
static MEMORY: OrExit = OrExit("trace-report");

/// Says where the time of a recorded run went.
#[derive(Parser)]
#[command(name = "trace-report", version)]
struct Arguments {
    #[command(flatten)]
    report: ReportArgs,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print(); // a closed stream is not an error
            return ExitCode::from(code);
        }
    };
    use_recorded_mode();
    let printed = arguments
        .report
        .find_runs(inputs)
        .and_then(|report| report.answer(&Progress::default()))
        .and_then(|answer| match answer {
            Answer::Text(text) => print(&text),
            Answer::Written(place) => {
                let _ = writeln!(io::stderr(), "trace-report: {place}");
                Ok(())
            }
        });
    match printed {
        Ok(()) | Err(Error::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "trace-report: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns the given paths, or else the directory that the environment names.
fn inputs(paths: Vec<PathBuf>, runs: &Runs) -> Result<(Vec<PathBuf>, Runs), Error> {
    let are_named = !paths.is_empty();
    let set = std::env::var_os("SA_PROFILE_DIR").filter(|directory| !directory.is_empty());
    let paths = match set {
        _ if are_named => paths,
        Some(directory) => vec![PathBuf::from(directory)],
        None => {
            let why = "no PATH given, and SA_PROFILE_DIR is not set";
            return Err(Error::Usage(why.to_owned()));
        }
    };
    let found = find_runs(&paths, are_named, runs)?;
    for notice in &found.notices {
        let _ = writeln!(io::stderr(), "trace-report: {notice}");
    }
    Ok((found.paths, found.runs))
}

fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    let printed = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    printed.map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => Error::BrokenPipe,
        _ => Error::Write {
            path: "standard output".into(),
            source,
        },
    })
}
