//! The launcher: starts the processes, sends the load, kills a worker if asked to, stops everything, merges the trace, and prints a summary.

mod environment;
mod kill;
mod process;
mod stop;
mod summary;
mod tree;

use std::env;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use nix::sys::signal::Signal;
use sa_recorder::{Recorder, instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::load::{self, Outcome, Outcomes};
use crate::options::Options;
use stop::StopSignal;
use summary::Summary;
use tree::Tree;

/// The environment variables for the run directory, the current name first.
const DIRECTORY_VARIABLES: [&str; 2] = ["SA_PROFILE_DIR", "SA_PROFILE_OUTPUT"];
const DEFAULT_DIRECTORY: &str = "./profile_out";

/// Runs the demo.
pub(crate) fn main() -> ExitCode {
    let options = Options::parse();
    match ensure_directory().and_then(|()| run(&options)) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints a problem on standard error.
pub(crate) fn print_error(problem: &str) {
    let _ = writeln!(io::stderr(), "serving-demo: {problem}");
}

/// Executes this program again with the default run directory if the environment has none.
fn ensure_directory() -> io::Result<()> {
    let named = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if DIRECTORY_VARIABLES.iter().any(named) {
        return Ok(());
    }
    // Changing this process's environment instead would be unsound if another thread could read it.
    let arguments = env::args_os().skip(1);
    let mut command = Command::new(env::current_exe()?);
    command.env(DIRECTORY_VARIABLES[0], DEFAULT_DIRECTORY);
    Err(command.args(arguments).exec())
}

fn run(options: &Options) -> io::Result<ExitCode> {
    let recorder = Recorder::init();
    recorder.set_process_name("serving-demo");
    let directory = recorder.directory();
    let output = options.output.clone().or_else(|| recorder.trace());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut signal = stop::watch(&runtime)?;
    let served = match start(options, &runtime, &mut signal)? {
        Ok(tree) => serve(options, tree, &runtime, signal),
        Err(signal) => {
            mark_interruption(signal);
            Served {
                interrupted: Some(signal),
                ..Served::default()
            }
        }
    };
    recorder.finish();
    let merged = match (&directory, options.no_merge) {
        (Some(directory), false) => Some(summary::merge(directory, output)),
        _ => None,
    };
    let summary = Summary {
        options,
        served: &served,
        directory: directory.as_deref(),
        merged: merged.as_ref(),
    };
    let mut out = io::stdout().lock();
    let printed = write!(out, "{summary}").and_then(|()| out.flush());
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(error);
    }
    Ok(summary.exit_code())
}

/// The events between the start and the stop of the processes.
#[derive(Debug, Default)]
struct Served {
    outcomes: Vec<Outcome>,
    seconds: f64,
    interrupted: Option<Signal>,
    /// True if all processes had started before the interruption.
    all_started: bool,
    killed: Option<kill::Killed>,
    /// Problems with the end of processes.
    troubles: Vec<String>,
}

/// Starts the processes. A signal interrupts this: the processes are killed, because a starting process does not yet listen for the stop command.
fn start(
    options: &Options,
    runtime: &Runtime,
    signal: &mut StopSignal,
) -> io::Result<Result<Tree, Signal>> {
    runtime.block_on(async {
        tokio::select! {
            tree = Tree::start(options) => tree.map(Ok),
            signal = signal.received() => Ok(Err(signal)),
        }
    })
}

/// Records the interruption in the trace.
fn mark_interruption(signal: Signal) {
    instant!("launcher", "run.interrupted", signal = signal.as_str());
}

fn serve(options: &Options, mut tree: Tree, runtime: &Runtime, mut signal: StopSignal) -> Served {
    let outcomes = Outcomes::default();
    let watch = tree.watch_workers(options, &outcomes);
    let start = Instant::now();
    let interrupted = runtime.block_on(async {
        let mut requests = JoinSet::new();
        let interrupted = tokio::select! {
            () = load::drive(options, tree.port(), &outcomes, &mut requests) => None,
            signal = signal.received() => Some(signal),
        };
        // Closes the connections, and waits until the spans of the requests are closed too.
        requests.shutdown().await;
        interrupted
    });
    let seconds = start.elapsed().as_secs_f64();
    interrupted.into_iter().for_each(mark_interruption);
    let mut troubles = tree.stop();
    let killed = watch.join(&mut troubles);
    Served {
        outcomes: outcomes.drain(),
        seconds,
        interrupted,
        all_started: true,
        killed,
        troubles,
    }
}
