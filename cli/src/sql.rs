//! `sa-profile sql`: runs a statement on the tables of a run, with an engine in the user's Python.

use crate::directory;
use crate::error::Error;
use crate::signals::{ENDING, Signals};
use crate::tables;
use clap::ValueEnum;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use trace_merge::{Options, Runs};
use trace_report::{SQL_ENGINE, STATEMENTS, statement};

/// Interval of the checks if the tables are written, or the engine has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of attempts to remove a folder in which a thread is still writing.
const TRIES: u32 = 100;

/// Runs a SQL statement over the tables of a run, with DuckDB, DataFusion or Spark.
#[derive(clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Arguments {
    /// Run directory, fragment, trace, or a folder of tables [default: the newest run]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// A statement, a FILE.sql, or the name of a statement of docs/sql.md, such as `names`
    #[arg(value_name = "STATEMENT", required = true)]
    statement: String,
    /// Engine [default: first found]
    #[arg(long, value_enum, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// The master of a Spark cluster [default: this machine]
    #[arg(long, value_name = "URL", requires = "engine")]
    master: Option<String>,
    /// How to print the rows
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum Engine {
    DuckDb,
    DataFusion,
    Spark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Csv,
    Json,
}

/// Runs the command. The exit code is the engine's.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let statement = statement_text(&arguments.statement)?;
    // After a signal the temporary files must be removed, so the threads and programs that write them are ended first. Signals are blocked before
    // there are threads, because a thread could get them.
    let signals = Signals::for_command(&ENDING)?;
    let scratch = tempfile::Builder::new()
        .prefix("sa-profile-sql-")
        .tempdir()
        .map_err(|source| Error::file(&std::env::temp_dir(), source))?;
    let tables = match find_tables(arguments.run.as_deref(), scratch.path(), &signals)? {
        Ok(tables) => tables,
        Err(signal) => {
            remove(scratch);
            let number = u8::try_from(signal as i32).unwrap_or(0);
            return Ok(ExitCode::from(128 + number));
        }
    };
    let python = python();
    let mut command = Command::new(&python);
    command.args(["-c", SQL_ENGINE]);
    command.args(["--format", &argument_name(arguments.format)]);
    if let Some(engine) = arguments.engine {
        command.args(["--engine", &argument_name(engine)]);
    }
    if let Some(master) = &arguments.master {
        command.args(["--master", master]);
    }
    command.arg("--").arg(tables).stdin(Stdio::piped());
    command.env("TMPDIR", scratch.path()); // files that the engine leaves there are removed, too
    let failed = |source: io::Error| Error::file(&python, source);
    let started = signals.with_original_mask(|| command.spawn());
    let mut engine = started.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::Unusable(format!(
            "{}: expected Python 3.10 or newer, found none",
            python.display()
        )),
        _ => failed(source),
    })?;
    if let Some(mut stdin) = engine.stdin.take() {
        let _ = stdin.write_all(statement.as_bytes()); // the engine reports itself why it did not read this
    }
    let code = wait_for(&mut engine, &signals).map_err(failed)?;
    Ok(ExitCode::from(code))
}

/// Returns the tables of a run, written to a scratch folder, or the signal that came first. A folder of tables is used as it is.
fn find_tables(
    run: Option<&Path>,
    scratch: &Path,
    signals: &Signals,
) -> Result<Result<PathBuf, Signal>, Error> {
    // Spark can also read addresses that are not local paths.
    let are_tables =
        |run: &Path| run.join("metadata").is_dir() || run.to_string_lossy().contains("://");
    if let Some(tables) = run.filter(|run| are_tables(run)) {
        return Ok(Ok(tables.to_owned()));
    }
    let named = run.map(Path::to_owned).into_iter().collect();
    let (paths, runs) = directory::inputs(named, &Runs::Newest)?;
    let to = scratch.join("tables");
    let options = Options {
        runs,
        ..Options::new(paths)
    };
    let folder = to.clone();
    let writer = crate::spawn(move || tables::write_new(&options, &folder))?;
    while !writer.is_finished() {
        if let Some(arrived) = signals.next(Some(CHECK_INTERVAL)) {
            return Ok(Err(arrived.signal));
        }
    }
    match writer.join() {
        Ok(written) => written.map(|()| Ok(to)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Removes a folder in which a thread is still writing. Tries again until nothing is left.
fn remove(scratch: TempDir) {
    let path = scratch.keep();
    for _ in 0..TRIES {
        if std::fs::remove_dir_all(&path).is_ok() {
            return;
        }
    }
}

/// Returns a value as it is written in the engine's arguments.
fn argument_name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the statement to run: a named one, the content of a file, or the argument itself.
fn statement_text(words: &str) -> Result<String, Error> {
    if let Some(text) = statement(words) {
        return Ok(text.to_owned());
    }
    let path = Path::new(words);
    if path.extension().is_some_and(|extension| extension == "sql") {
        return std::fs::read_to_string(path).map_err(|source| Error::file(path, source));
    }
    if words.trim().contains(char::is_whitespace) {
        return Ok(words.to_owned());
    }
    let names: Vec<&str> = STATEMENTS.iter().map(|(name, _)| *name).collect();
    let hint = match path.exists() {
        true => "; the statement comes after the run",
        false => "",
    };
    Err(Error::Unusable(format!(
        "expected a statement, a FILE.sql or one of {}, found {words:?}{hint}",
        names.join(", ")
    )))
}

/// Returns the Python to use: of the active virtual environment, of the installation of this program, or in `PATH`.
fn python() -> PathBuf {
    let active = std::env::var_os("VIRTUAL_ENV")
        .filter(|folder| !folder.is_empty())
        .map(|folder| Path::new(&folder).join("bin/python3"));
    let program = std::env::current_exe().ok();
    let next_to_program = program.and_then(|program| Some(program.parent()?.join("python3")));
    let mut candidates = [active, next_to_program].into_iter().flatten();
    candidates
        .find(|python| python.exists())
        .unwrap_or_else(|| PathBuf::from("python3"))
}

/// Waits for the engine and returns its exit code. Signals to this process alone are passed on. The engine gets the signals of a terminal itself.
fn wait_for(engine: &mut Child, signals: &Signals) -> io::Result<u8> {
    loop {
        if let Some(status) = engine.try_wait()? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.unwrap_or(1));
        }
        let arrived = signals.next(Some(CHECK_INTERVAL));
        if let Some(arrived) = arrived.filter(|arrived| arrived.sender.is_some()) {
            let pid = Pid::from_raw(engine.id().cast_signed());
            let _ = kill(pid, arrived.signal); // it may have just ended
        }
    }
}
