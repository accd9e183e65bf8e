//! The command line: arguments → [`Options`], report and exit code. Windows and filters are [`SelectionArgs`].

mod interrupt;

use crate::command::process_limits::share_heap;
use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory, Parser, ValueEnum};
use clap_complete::Shell;
use interrupt::Interrupts;
use sa_format::{visible_json, visible_lines};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trace_merge::check::{check, check_stream};
use trace_merge::survey::find_runs;
use trace_merge::{
    Bar, ClockBy, ClockOptions, Error, EventOptions, Layout, Mode, Offset, Options, Output, Runs,
    SelectionArgs, max_threads, merge_with, parse_error, parse_offset, parse_size,
};

/// Heading of the options that few users need; `-h` leaves them out.
const RARE: &str = "Rarely needed (docs/merge.md explains them)";

const EXAMPLES: &str = "\
Examples:
  trace-merge profile_out                  merge the newest run into profile_out/trace.json
  trace-merge --last 30s profile_out       only the last 30 seconds, also of a live server
  trace-merge profile_out kineto.json.gz   with the trace of another profiler
  trace-merge --check trace.json.gz        do viewers load this trace, and do its spans nest?

Exit status: 0 done, 1 damage or loss and --strict was given, 2 nothing usable or bad usage.
Of --check: 0 no problem found, 1 problems found, 2 the file cannot be read.";

/// Merges what the processes of a run recorded into one trace for Perfetto.
#[derive(Parser)]
#[command(
    name = "trace-merge",
    version,
    after_help = "See --help for all options and examples."
)]
#[command(group = ArgGroup::new("runs").args(["run", "previous", "all_runs"]))]
struct Arguments {
    /// Run directory, fragment, pattern or Chrome trace [default: what SA_PROFILE_DIR names]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Trace to write [default: <run directory>/trace.json], `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compress the trace, whatever its name
    #[arg(short = 'z', long)]
    gzip: bool,
    /// Write parts of at most this much text, such as 900MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "verbatim")]
    split: Option<u64>,
    /// Merge the run with this id
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Merge the run before the newest
    #[arg(long)]
    previous: bool,
    /// Merge all runs into one trace
    #[arg(long)]
    all_runs: bool,
    /// Merge nothing; check that viewers load this trace, and that its spans nest
    #[arg(long, value_name = "FILE", conflicts_with_all = MERGE_OPTIONS)]
    check: Option<PathBuf>,
    /// Exit with 1 if anything was damaged or lost
    #[arg(long)]
    strict: bool,
    /// Report as text on stderr, json on stdout, or none
    #[arg(long, value_enum, default_value_t = ReportForm::Text, value_name = "FORM", hide_possible_values = true)]
    report: ReportForm,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Add a duration to the times of another profiler's trace
    #[arg(long = "offset", value_name = "FILE=±DURATION", value_parser = parse_offset, conflicts_with = "verbatim", help_heading = RARE, hide_short_help = true)]
    offsets: Vec<Offset>,
    /// Align the hosts' clocks by flows, anchors or none
    #[arg(long, value_enum, default_value_t = Clock::Flows, value_name = "BY", conflicts_with = "verbatim", hide_possible_values = true, help_heading = RARE, hide_short_help = true)]
    clock: Clock,
    /// Maximum error of the wall clock of a host
    #[arg(long, value_name = "DURATION", value_parser = parse_error, default_value = "10ms", conflicts_with = "verbatim", help_heading = RARE, hide_short_help = true)]
    wall_error: Duration,
    /// Write all events in the order of their times
    #[arg(long, conflicts_with_all = ["verbatim", "split"], help_heading = RARE, hide_short_help = true)]
    sort: bool,
    /// Memory that the merge may use
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "256MiB", help_heading = RARE, hide_short_help = true)]
    memory: u64,
    /// Copy the lines as they were recorded
    #[arg(long, conflicts_with_all = ["window", "filter"], help_heading = RARE, hide_short_help = true)]
    verbatim: bool,
    /// Draw no arrows between the events of a request
    #[arg(long, help_heading = RARE, hide_short_help = true)]
    no_link_requests: bool,
    /// Show events more than 30 days from all others
    #[arg(long, help_heading = RARE, hide_short_help = true)]
    keep_times: bool,
    /// Neither append nor remove the rings of dead processes
    #[arg(long, help_heading = RARE, hide_short_help = true)]
    no_settle: bool,
    /// Worker threads [default: one per core, at most 16]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = RARE, hide_short_help = true)]
    threads: usize,
    /// Print completions: bash, zsh, fish, elvish, powershell
    #[arg(long, value_name = "SHELL", exclusive = true, hide_possible_values = true, help_heading = RARE, hide_short_help = true)]
    completions: Option<Shell>,
}

/// Options that only apply to a merge.
const MERGE_OPTIONS: [&str; 26] = [
    "paths",
    "output",
    "gzip",
    "split",
    "runs",
    "last",
    "from",
    "to",
    "around",
    "reach",
    "pid",
    "process",
    "name",
    "cat",
    "request",
    "verbatim",
    "sort",
    "memory",
    "no_link_requests",
    "offsets",
    "clock",
    "wall_error",
    "keep_times",
    "no_settle",
    "strict",
    "threads",
];

/// Values of `--clock`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clock {
    Flows,
    Anchors,
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportForm {
    Text,
    Json,
    None,
}

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    share_heap();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            let wants_all = error.kind() == ErrorKind::DisplayHelp
                && std::env::args_os().any(|argument| argument == "--help");
            // A closed stream is not a reason to fail.
            let _ = match wants_all {
                true => full_help().print_help(),
                false => error.print(),
            };
            return ExitCode::from(code);
        }
    };
    if let Some(shell) = arguments.completions {
        return complete(shell);
    }
    if let Some(path) = &arguments.check {
        return run_check(path, &arguments);
    }
    if arguments.threads > max_threads() {
        let (asked, most) = (arguments.threads, max_threads());
        print_message(&format!(
            "--threads {asked}: using only {most}, four for each core"
        ));
    }
    let interrupts = Interrupts::block();
    let bar = Bar::new(arguments.quiet);
    interrupts.watch(bar.eraser());
    let result = options(&arguments, |name| std::env::var_os(name).map(PathBuf::from))
        .and_then(|options| merge_with(&options, bar.progress()));
    bar.end();
    match result {
        Ok(report) => {
            let is_bad = arguments.strict && !report.is_clean();
            print_report(&arguments, &report, || report.text(), is_bad)
        }
        Err(Error::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

/// Returns the help that `--help` prints: all options, one line for each. clap's own form takes
/// three lines for each.
fn full_help() -> clap::Command {
    Arguments::command()
        .mut_args(|argument| argument.hide_short_help(false))
        .after_help(EXAMPLES)
}

/// Prints the completions of a shell.
fn complete(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(shell, &mut command, "trace-merge", &mut script);
    match print(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("standard output: {error}")),
    }
}

fn run_check(path: &Path, arguments: &Arguments) -> ExitCode {
    let report = match path == Path::new("-") {
        true => check_stream(Path::new("standard input"), io::stdin().lock()),
        false => check(path),
    };
    match report {
        Ok(report) => print_report(arguments, &report, || report.text(), !report.is_clean()),
        Err(error) => fail(&format!("{}: {error}", path.display())),
    }
}

fn options(
    arguments: &Arguments,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Result<Options, Error> {
    let to_stdout = arguments.output.as_deref() == Some(Path::new("-"));
    if to_stdout && arguments.report == ReportForm::Json {
        return Err(Error::Usage(
            "--report json and -o - cannot both write to the standard output".to_owned(),
        ));
    }
    let mut options = Options {
        threads: arguments.threads,
        gzip: arguments.gzip,
        mode: match arguments.verbatim {
            true => Mode::Verbatim,
            false => Mode::Events(EventOptions {
                layout: match arguments.split {
                    Some(bytes) => Layout::Parts { bytes },
                    None if arguments.sort => Layout::Sorted {
                        memory: arguments.memory / 2,
                    },
                    None => Layout::Recorded,
                },
                link_requests: !arguments.no_link_requests,
                ..arguments.selection.events()
            }),
        },
        clocks: ClockOptions {
            by: match arguments.clock {
                Clock::Flows => ClockBy::Flows,
                Clock::Anchors => ClockBy::Anchors,
                Clock::None => ClockBy::None,
            },
            wall_error: Some(arguments.wall_error),
            offsets: arguments.offsets.clone(),
            keep_times: arguments.keep_times,
        },
        memory: Some(arguments.memory),
        settle: !arguments.no_settle,
        ..Options::new(arguments.paths.clone())
    };
    let has_paths = !options.paths.is_empty();
    if !has_paths {
        let (path, output) = from_environment(variable)?;
        options.paths.push(path);
        options.output = output;
    }
    let (previous, all_runs) = (arguments.previous, arguments.all_runs);
    let runs = Runs::from_options(arguments.run.clone(), previous, all_runs);
    let found = find_runs(&options.paths, has_paths, &runs)?;
    if !arguments.quiet {
        found
            .notices
            .iter()
            .for_each(|notice| print_message(notice));
    }
    (options.paths, options.runs) = (found.paths, found.runs);
    match &arguments.output {
        Some(_) if to_stdout => options.output = Output::Stdout,
        Some(path) => options.output = Output::File(path.clone()),
        None => {}
    }
    Ok(options)
}

/// Returns the run directory that the recorder uses, and the destination of the trace.
fn from_environment(
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Result<(PathBuf, Output), Error> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    if let Some(directory) = set("SA_PROFILE_DIR") {
        return Ok((directory, Output::Default));
    }
    let Some(path) = set("SA_PROFILE_OUTPUT") else {
        return Err(Error::Usage(
            "no PATH given, and neither SA_PROFILE_DIR nor SA_PROFILE_OUTPUT is set".to_owned(),
        ));
    };
    if path.extension().is_some_and(|suffix| suffix == "json") {
        let mut fragments = path.clone().into_os_string();
        fragments.push(".fragments");
        return Ok((fragments.into(), Output::File(path)));
    }
    Ok((path, Output::Default))
}

/// Prints the report in the requested form. Returns exit code 1 if `is_bad`.
fn print_report(
    arguments: &Arguments,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
    is_bad: bool,
) -> ExitCode {
    match arguments.report {
        ReportForm::Json => {
            if let Err(error) = print_json(report) {
                return fail(&format!("report: {error}"));
            }
        }
        ReportForm::Text if !arguments.quiet => text().lines().for_each(print_lines),
        _ => {}
    }
    ExitCode::from(u8::from(is_bad))
}

fn print_json(report: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    print((visible_json(&text).into_owned() + "\n").as_bytes())
}

/// Prints to the standard output. A reader that has closed it is not an error.
fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    let printed = stdout.write_all(bytes);
    match printed.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints an error, and returns exit code 2.
fn fail(message: &str) -> ExitCode {
    print_message(message);
    ExitCode::from(2)
}

fn print_message(message: &str) {
    print_lines(&format!("trace-merge: {message}"));
}

fn print_lines(message: &str) {
    // Quoted text, such as a path, must not control the terminal or change the direction of text.
    let _ = writeln!(std::io::stderr(), "{}", visible_lines(message)); // there is no other way to report it
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
