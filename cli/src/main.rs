//! `sa-profile`: records a command, opens its trace, and checks whether recording works. It also switches recording on and off in the processes of a
//! live run, and shows what they have recorded.

mod bundle;
mod completions;
mod control;
mod directory;
mod doctor;
mod error;
mod http;
mod level;
mod obey;
mod open;
mod pace;
mod report;
mod run;
mod serve;
mod signals;
mod snapshot;
mod sql;
mod start;
mod status;
mod tables;
mod watch;
mod words;

use clap::{Parser, Subcommand};
use error::Error;
use sa_format::visible_lines;
use std::io::{self, Write};
use std::process::ExitCode;
use trace_merge::{OrExit, use_recorded_mode};
use trace_report::command::{BundleArgs, DiffArgs, ReportArgs};
use words::say;

#[global_allocator]
static MEMORY: OrExit = OrExit("sa-profile");

const EXAMPLES: &str = "\
Examples:
  sa-profile run -- COMMAND                      record a command and all it starts, and merge
  sa-profile report                              where did the time go in the newest run?
  sa-profile diff --fail-if 'p95(ttft) > +5%' before after   what became slower?
  sa-profile tables --to parquet                 the same data as Parquet, for SQL
  sa-profile sql names                           the same figures in SQL, and any statement of yours
  sa-profile doctor                              would recording work here?
  SA_PROFILE_DIR=out SA_PROFILE_START=paused serve   begin with recording off
  sa-profile start --for 30s out                 record 30 seconds in every process
  sa-profile stop out
  sa-profile status --watch out
  sa-profile watch out                           how fast are requests now?
  sa-profile serve out                           the same as a page, JSON, and for Prometheus
  sa-profile snapshot out aside && trace-merge --last 30s aside

Without DIR or RUN, a command uses the newest run in SA_PROFILE_DIR, else SA_PROFILE_OUTPUT,
else ./profile_out, or in the folders that `run` created there. start, stop, level, watch, serve
and snapshot use the newest live one.
Exit status: 0 done, 1 not all processes obeyed or --fail-if holds, 2 nothing usable or bad usage.
`run` exits with the status of its command.";

/// Shows where the time of a serving engine goes: records, switches and opens its traces.
#[derive(Parser)]
#[command(name = "sa-profile", version, after_long_help = EXAMPLES, after_help = "See --help for examples.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Open(open::Arguments),
    /// Shows where the time of a recorded run went; the run may still be live.
    Report(ReportArgs),
    /// Compares two recorded runs: what became slower, and why.
    Diff(DiffArgs),
    Tables(tables::Arguments),
    Sql(sql::Arguments),
    Bundle(BundleArgs),
    Doctor(doctor::Arguments),
    Start(start::Arguments),
    Stop(start::StopArguments),
    Level(level::Arguments),
    Status(status::Arguments),
    Watch(watch::Arguments),
    Serve(serve::Arguments),
    Snapshot(snapshot::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// Returns true if the command only writes results computed from a run, and starts no program of the user.
    fn writes_figures(&self) -> bool {
        matches!(
            self,
            Command::Report(_)
                | Command::Diff(_)
                | Command::Tables(_)
                | Command::Sql(_)
                | Command::Bundle(_)
        )
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.command.writes_figures() {
        use_recorded_mode();
    }
    let outcome = match &arguments.command {
        Command::Run(arguments) => Ok(run::run(arguments)),
        Command::Open(arguments) => open::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Diff(arguments) => report::diff(arguments),
        Command::Tables(arguments) => tables::run(arguments),
        Command::Sql(arguments) => sql::run(arguments),
        Command::Bundle(arguments) => bundle::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Start(arguments) => start::run(arguments),
        Command::Stop(arguments) => start::stop(arguments),
        Command::Level(arguments) => level::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Watch(arguments) => watch::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Snapshot(arguments) => snapshot::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(Error::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(2)
        }
    }
}

/// Prints lines for people to stdout. Control characters and invisible ones in quoted names are made visible, so that they cannot control the
/// terminal.
fn print(lines: &str) -> Result<(), Error> {
    print_data(&visible_lines(lines))
}

/// Prints data for programs to stdout.
fn print_data(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text.as_bytes());
    printed.and_then(|()| stdout.flush()).map_err(Error::stdout)
}

/// Starts a thread.
fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, error::Error> {
    let started = std::thread::Builder::new().spawn(work);
    started.map_err(|error| error::Error::Unusable(format!("threads: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_make_sense() {
        Arguments::command().debug_assert();
    }
}
