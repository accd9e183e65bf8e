//! `sa-profile open`: serves one trace to ui.perfetto.dev until it is fetched, or until Ctrl-C.

mod browser;
mod content;
mod link;
mod served;
mod site;

use crate::directory;
use crate::error::Error;
use crate::http::server::Server;
use crate::signals::{ENDING, Signals};
use crate::words::say;
use content::check_trace;
use link::{link, shown_ns};
use served::Served;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trace_merge::survey::{RunProcess, processes};
use trace_merge::{Bar, Moment, Options, parse_duration, parse_moment};
use trace_report::{ReportOptions, merge_and_read};

/// The only port from which Perfetto's page may load, according to its content security policy.
pub(crate) const PORT: u16 = 9001;
/// Interval at which the command checks if the trace was fetched.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  sa-profile open                          the newest run, from its first request to its last
  sa-profile open --at 12.5s --for 50ms    shows that time
  sa-profile open --from 0s                shows all
  ssh -L 9001:127.0.0.1:9001 server sa-profile open trace.json.gz   for the browser at hand

Exit status: 0 fetched, or ended by Ctrl-C; 2 the trace cannot be served.";

/// Serves a trace to ui.perfetto.dev, on this machine only, until it is fetched.
///
/// It shows the time in which the server had requests, unless another time is asked for.
///
/// Nothing is sent anywhere: the page in your browser reads the file from 127.0.0.1.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub(crate) struct Arguments {
    /// Run directory, or a trace, `.json` or `.json.gz` [default: the newest run]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Show the time from here on, counted from the start of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["from", "to"])]
    at: Option<Duration>,
    /// Length of the time to show
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "at", default_value = "100ms")]
    span: Duration,
    /// Show the time from here on [default: the start of the trace]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Duration>,
    /// Show the time up to here [default: the end of the trace]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Duration>,
    /// Port on 127.0.0.1; ui.perfetto.dev itself can only use the default
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Print the link only
    #[arg(long)]
    no_browser: bool,
}

/// Parses a time that is counted from the start of the trace.
fn parse_time(text: &str) -> Result<Duration, String> {
    match parse_moment(text) {
        Ok(Moment::FromStart(time)) => Ok(time),
        _ => Err("expected a time from the start of the trace such as 12.5s".to_owned()),
    }
}

impl Arguments {
    /// Returns the time range that the user selected, in ns from the start of the trace.
    fn asked_ns(&self) -> Option<(i64, i64)> {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        match (self.at, self.from, self.to) {
            (Some(at), ..) => Some((ns(at), ns(at.saturating_add(self.span)))),
            (None, None, None) => None,
            (None, from, to) => Some((from.map_or(0, ns), to.map_or(i64::MAX, ns))),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let trace = find_trace(arguments.run.as_deref())?;
    let asked_ns = arguments.asked_ns();
    open(&trace, asked_ns, arguments.port, !arguments.no_browser)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the trace that the argument names, or the trace of the run that it names. A run without a trace is merged.
fn find_trace(argument: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(file) = argument.filter(|path| !path.is_dir()) {
        return Ok(file.to_owned());
    }
    let directory = directory::newest(argument)?;
    let Some(trace) = trace_in(&directory) else {
        return merge_run(&directory);
    };
    let processes = processes(&directory).unwrap_or_default();
    if !processes.is_empty() && !shows_run(&trace, &processes) {
        say(&format!(
            "{} does not show the newest run of {}",
            trace.display(),
            directory.display()
        ));
        return merge_run(&directory);
    }
    if processes.iter().any(RunProcess::is_recording) {
        say(&format!(
            "the run has recorded more since {} was written: trace-merge {} merges it again",
            trace.display(),
            directory.display()
        ));
    }
    Ok(trace)
}

/// Returns true if a merged trace shows the run of these processes. A directory keeps the trace of an earlier run when the next one begins.
fn shows_run(trace: &Path, processes: &[RunProcess]) -> bool {
    let file = File::open(trace).map_err(|error| error.to_string());
    let head = file.and_then(|file| check_trace(&file)).unwrap_or_default();
    let mut processes = processes.iter();
    processes.any(|process| head.runs.contains(&process.header.run))
}

/// Returns the newest trace that a merge has written to a directory.
fn trace_in(directory: &Path) -> Option<PathBuf> {
    let traces = ["trace.json", "trace.json.gz"]
        .map(|name| directory.join(name))
        .into_iter()
        .filter(|trace| trace.is_file());
    traces.max_by_key(|trace| trace.metadata().and_then(|found| found.modified()).ok())
}

/// Merges a run and returns its trace.
fn merge_run(directory: &Path) -> Result<PathBuf, Error> {
    let bar = Bar::new(false);
    let options = Options::new([directory.to_owned()]);
    let merged = merge_and_read(&options, &ReportOptions::default(), bar.progress());
    bar.end();
    let (_, report) = merged?;
    let trace = report
        .output
        .path
        .clone()
        .unwrap_or_else(|| directory.to_owned());
    say(&format!("merged the run into {}", trace.display()));
    if !report.is_clean() {
        say(&format!(
            "something was lost or damaged: trace-merge {} says what",
            directory.display()
        ));
    }
    Ok(trace)
}

/// Serves `trace` until it was fetched completely or a signal ends it. Perfetto shows the selected time, in ns from the start of the trace, or the
/// time in which the server had requests.
///
/// # Errors
/// Returns an error if it cannot be served.
pub(crate) fn open(
    trace: &Path,
    asked_ns: Option<(i64, i64)>,
    port: u16,
    with_browser: bool,
) -> Result<(), Error> {
    let served = Served::open(trace)?;
    let (path, is_private) = (served.link_path(), served.token.is_some());
    let view = served.head.view.clone();
    let shown_ns = shown_ns(asked_ns, view.as_ref());
    if asked_ns.is_some() && shown_ns.is_none() {
        say("that time is outside the trace, so all of it is shown");
    }
    // This comes before the server's thread is created, so that the thread gets no signal.
    let signals = Signals::for_command(&ENDING)?;
    let unusable = |error| not_served(port, &error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(unusable)?;
    let port = listener.local_addr().map_err(unusable)?.port();
    let server = Server::new(listener, served).map_err(unusable)?;
    let server = crate::spawn(move || server.run())?;
    let address = format!("127.0.0.1:{port}{path}");
    let link = link(&address, shown_ns, view.as_ref());
    say(&format!("open {link}"));
    if port != PORT {
        say(&format!(
            "ui.perfetto.dev loads from port {PORT} only: this link is for a Perfetto of your own, or a tunnel that ends at {PORT}"
        ));
    } else if std::env::var_os("SSH_CONNECTION").is_some() {
        say(&format!(
            "from another machine: ssh -L {PORT}:127.0.0.1:{port} to here first"
        ));
    }
    let lookup = |name: &str| std::env::var_os(name);
    // The file exists as long as the trace is served.
    let _started = with_browser
        .then(|| signals.with_original_mask(|| browser::open(&link, is_private, lookup)));
    say("serving until it is fetched; Ctrl-C ends it");
    // Chrome asks this since version 142. A page that was denied access cannot show why it stays empty.
    say("if the browser asks whether the page may reach apps on this device: allow it");
    while !server.is_finished() {
        if signals.next(Some(CHECK_INTERVAL)).is_some() {
            return Ok(());
        }
    }
    say("fetched");
    Ok(())
}

fn not_served(port: u16, error: &io::Error) -> Error {
    Error::Unusable(match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "port {port} is taken, and ui.perfetto.dev loads from port {PORT} only. Is another sa-profile open, or trace_processor --httpd, still running? \
             `ss -ltnp 'sport = :{port}'` names it. Or open the file by hand in https://ui.perfetto.dev"
        ),
        _ => format!("127.0.0.1:{port}: {error}"),
    })
}
