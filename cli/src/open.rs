//! `sa-profile open`: serves one trace to ui.perfetto.dev until it was fetched, or Ctrl-C.

mod browser;
mod request;
mod served;
mod server;

use crate::signals::Signals;
use crate::words::say;
use nix::sys::signal::Signal;
use served::Served;
use server::Server;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trace_merge::parse_duration;

/// The only port from which Perfetto's pages may load: their content security policy names it.
pub(crate) const PORT: u16 = 9001;
/// How often a fetched trace is noticed.
const LOOK: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  sa-profile open profile_out
  sa-profile open profile_out --at 12.5s --for 50ms   shows that time
  ssh -L 9001:127.0.0.1:9001 server sa-profile open trace.json.gz   for the browser at hand

Exit status: 0 fetched, or ended by Ctrl-C; 2 the trace cannot be served.";

/// Serves a trace to ui.perfetto.dev, on this machine only, until it is fetched.
///
/// Nothing is sent anywhere: the page in your browser reads the file from 127.0.0.1.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub(crate) struct Arguments {
    /// The trace, `.json` or `.json.gz`, or a run directory that has one
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Show the time from here on, counted from the begin of the trace
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    at: Option<Duration>,
    /// Show so much of it; what ends behind the trace is shown as a whole
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "at", default_value = "100ms")]
    span: Duration,
    /// Port on 127.0.0.1; ui.perfetto.dev itself may use no other than the default
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Print the link only
    #[arg(long)]
    no_browser: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let shown = arguments.at.map(|at| (at, at + arguments.span));
    let opened = open(
        &arguments.trace,
        shown,
        arguments.port,
        !arguments.no_browser,
    );
    match opened {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem);
            ExitCode::from(2)
        }
    }
}

/// Serves `trace` until it was fetched whole or a signal ends it. Perfetto shows the time `shown`, from one moment to another, or all.
///
/// # Errors
/// Why it cannot be served, in words.
pub(crate) fn open(
    trace: &Path,
    shown: Option<(Duration, Duration)>,
    port: u16,
    with_browser: bool,
) -> Result<(), String> {
    let served = Served::open(trace)?;
    let name = served.name.clone();
    // Before the server's threads begin, so that none of them gets a signal.
    let signals = Signals::collect(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
        .map_err(|error| format!("signals: {error}"))?;
    let server = Server::start(served, port)?;
    let port = server.port();
    let shown =
        shown.map(|(from, to)| format!("&visStart={}&visEnd={}", from.as_nanos(), to.as_nanos()));
    let shown = shown.unwrap_or_default();
    let link = format!("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/{name}{shown}");
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
    if with_browser {
        signals.let_through(|| browser::open(&link, |name| std::env::var_os(name)));
    }
    say("serving until it was fetched; Ctrl-C ends it");
    // Chrome asks since version 142, and a page that may not reach this machine cannot say why it shows nothing.
    say("if the browser asks whether the page may reach apps on this device: allow it");
    while !server.is_done() {
        if signals.next(Some(LOOK)).is_some() {
            return Ok(());
        }
    }
    say("fetched");
    Ok(())
}
