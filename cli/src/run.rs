//! `sa-profile run`: sets up a run directory and the environment, runs the command and waits for all its descendants, merges the run and summarizes
//! it.

mod descendants;
pub(crate) mod directory;
mod environment;
mod hooks;
mod launch;
mod package;
pub(crate) mod preload;
mod python;
mod summary;
mod tree;

use crate::open;
use crate::words::amount;
use crate::words::{processes, say, say_plain};
use directory::Directory;
use environment::Settings;
use sa_format::{DEFAULT_DIRECTORY, run_folder_name};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use summary::Recorded;
use trace_merge::{Bar, EventOptions, Mode, Output, Runs, Window};
use trace_report::ReportOptions;
use tree::{Ended, Tree};

/// Exit code for failures before the command ran, the same as in `env`, `nohup` and `timeout`.
const OWN_FAILURE: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Maximum number of events for which the summary contains a short report. For more events, it would delay the end of the run and need much memory.
const MOST_EVENTS: u64 = 2_000_000;

const EXAMPLES: &str = "\
Examples:
  sa-profile run --python -o trace.json.gz -- python plain.py    samples a program as it is
  sa-profile run --max-mb 512 --last 30s -- ./serve.sh    a flight recorder: the end of a long run

Exit status: COMMAND's, or 128 + its signal; 127 not found, 126 not executable, 125 no run set up.";

/// Records a command and all processes it starts, and merges what they recorded.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub(crate) struct Arguments {
    /// Run directory [default: SA_PROFILE_DIR, else profile_out/<time>]
    #[arg(short, long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Trace to write [default: <run directory>/trace.json]; `.gz` compresses
    #[arg(short, long, value_name = "FILE", conflicts_with = "no_merge", value_parser = environment::trace_file)]
    output: Option<PathBuf>,
    /// Levels to record, of e2e, kernel, verbose [default: e2e,kernel]
    #[arg(long, value_name = "LEVELS", value_parser = environment::levels)]
    level: Option<String>,
    /// Disk space of each process, in MiB [default: SA_PROFILE_MAX_MB, else 4096]
    #[arg(long, value_name = "MIB", value_parser = environment::disk_bound)]
    max_mb: Option<u32>,
    /// Merge only the last part of the run: 30s, 5m
    #[arg(long, value_name = "TIME", conflicts_with = "no_merge", value_parser = amount::duration)]
    last: Option<Duration>,
    /// Then serve the trace to ui.perfetto.dev, as `sa-profile open` does
    #[arg(long, conflicts_with = "no_merge")]
    open: bool,
    /// Load this library into every process [default: the one installed with sa-profile]
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    preload: Option<Option<PathBuf>>,
    /// Sample every Python process; PATH is a folder sa_profile [default: the installed one]
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    python: Option<Option<PathBuf>>,
    /// With --python: record calls of MODULE:FUNCTION as spans; * matches any text
    #[arg(long, value_name = "NAME", requires = "python", value_parser = environment::track)]
    track: Vec<String>,
    /// With --python: record asyncio tasks from creation to end (Python 3.12 or newer)
    #[arg(long, requires = "python")]
    tasks: bool,
    /// Record calls of the Python functions that this file names (docs/hooks.md)
    #[arg(long, value_name = "FILE")]
    hooks: Option<PathBuf>,
    /// Leave the fragments as they are
    #[arg(long)]
    no_merge: bool,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let (directory, settings) = match prepare(arguments) {
        Ok(prepared) => prepared,
        Err(problem) => {
            say(&problem);
            return ExitCode::from(OWN_FAILURE);
        }
    };
    let changes = settings.variables(|name| std::env::var_os(name));
    let tree = match Tree::start(&arguments.command, changes) {
        Ok(tree) => tree,
        Err(error) => {
            directory.remove_if_unused();
            let program = arguments.command.first().map(|word| word.to_string_lossy());
            say(&format!("{}: {error}", program.unwrap_or_default()));
            return ExitCode::from(refusal(&error));
        }
    };
    let ended = tree.wait();
    conclude(arguments, &directory, &settings.run, &ended);
    match ended.code {
        Some(code) => ExitCode::from(code),
        None => {
            say(
                "the exit code of the command is unknown: sa-profile was started with SIGCHLD ignored",
            );
            ExitCode::from(OWN_FAILURE)
        }
    }
}

fn prepare(arguments: &Arguments) -> Result<(Directory, Settings), String> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let preload = arguments
        .preload
        .as_ref()
        .map(|path| preload::find(path.as_deref()))
        .transpose()?;
    if let Some(library) = &preload {
        preload::try_out(library).map_err(|problem| format!("--preload: {problem}"))?;
    }
    let hooks = arguments.hooks.as_deref().map(hooks::check).transpose()?;
    let python = match (&arguments.python, &hooks) {
        (Some(path), _) => Some(python::find("--python", path.as_deref())?),
        (None, Some(_)) => Some(python::find("--hooks", None)?),
        (None, None) => None,
    };
    let run = environment::run_id(variable)?;
    let mode = environment::folder_mode(variable);
    let wanted = arguments.dir.clone();
    let directory = match wanted.or_else(|| variable("SA_PROFILE_DIR").map(PathBuf::from)) {
        Some(path) => Directory::at(&path, mode),
        None => Directory::new_below(DEFAULT_DIRECTORY.as_ref(), run_folder_name(&run), mode),
    }?;
    let settings = Settings {
        directory: directory.absolute()?,
        run,
        levels: arguments.level.clone(),
        max_mb: arguments.max_mb,
        preload,
        python,
        // The folder of `--python` also serves `--hooks`.
        samples: arguments.python.is_some(),
        hooks,
        track: arguments.track.clone(),
        tasks: arguments.tasks,
    };
    Ok((directory, settings))
}

/// Returns the exit code that a shell uses for a command that could not be started.
fn refusal(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}

/// Merges the run and prints a summary.
fn conclude(arguments: &Arguments, directory: &Directory, run: &str, ended: &Ended) {
    if !ended.still_running.is_empty() {
        let number = ended.still_running.len() as u64;
        let still_running = processes(number);
        say(&format!(
            "{still_running} still running: what is recorded so far is merged"
        ));
    }
    if arguments.no_merge {
        say(&summary::unmerged(directory.path()));
        return;
    }
    let options = trace_merge::Options {
        // In a new directory, fragments without a header must belong to this run, too.
        runs: if directory.is_new() {
            Runs::All
        } else {
            Runs::Named(run.to_owned())
        },
        output: arguments
            .output
            .clone()
            .map_or(Output::Default, Output::File),
        mode: Mode::Events(EventOptions {
            window: arguments.last.map_or(Window::WholeRun, Window::Last),
            ..EventOptions::default()
        }),
        exits: ended.exits.clone(),
        ..trace_merge::Options::new([directory.path().to_owned()])
    };
    let bar = Bar::new(false);
    let short = ReportOptions {
        most_events: Some(MOST_EVENTS),
        ..ReportOptions::default()
    };
    let merged = trace_report::merge_and_read(&options, &short, bar.progress());
    bar.end();
    let (times, merged) = match merged {
        Ok((times, merged)) => (Some(times), Ok(merged)),
        Err(error) => (None, Err(error)),
    };
    let recorded = Recorded {
        directory: directory.path(),
        merged,
        times,
        preload: arguments.preload.is_some(),
    };
    say_plain(&recorded.text());
    directory.remove_if_unused();
    if let (true, Some(trace)) = (arguments.open, recorded.trace())
        && let Err(problem) = open::open(trace, None, open::PORT, true)
    {
        say(&problem.to_string());
    }
}
