//! `trace-report`: says where the time of a recorded run went.

use clap::Parser;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use trace_merge::{Error, Progress};
use trace_report::command::{Answer, ReportArgs};

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
            let _ = error.print(); // a closed stream is no reason to fail
            return ExitCode::from(code);
        }
    };
    let printed = arguments
        .report
        .or_default(named)
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

/// The run directory that the environment names.
fn named() -> Result<PathBuf, Error> {
    let set = std::env::var_os("SA_PROFILE_DIR").filter(|directory| !directory.is_empty());
    set.map(PathBuf::from)
        .ok_or_else(|| Error::Usage("no PATH given, and SA_PROFILE_DIR is not set".to_owned()))
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
