//! `sa-profile serve`: serves the figures of a run while it is live, as a page, as JSON and for Prometheus.

mod pages;
mod site;

use crate::directory;
use crate::error::Error;
use crate::http::privacy::has_private_fragments;
use crate::http::server::Server;
use crate::http::token::Token;
use crate::pace::{EVERY, PollTimer, left};
use crate::signals::{ENDING, Signals};
use crate::words::say;
use pages::Pages;
use site::{Access, FigureSite};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use trace_report::live::LiveReader;

/// Default address. The port is next to the one of `sa-profile open`.
const LISTEN: &str = "127.0.0.1:9002";

const EXAMPLES: &str = "\
Examples:
  sa-profile serve profile_out                 prints the link of the page, with its token
  curl -H 'Authorization: Bearer TOKEN' http://127.0.0.1:9002/stats      JSON
  curl -H 'Authorization: Bearer TOKEN' http://127.0.0.1:9002/metrics    what Prometheus scrapes
  (umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' > token)
  sa-profile serve --listen 0.0.0.0:9002 --token-file token profile_out
  curl -H \"Authorization: Bearer $(cat token)\" http://HOST:9002/stats

Exit status: 0 ended by Ctrl-C; 2 nothing can be served.";

/// Serves the figures of a live run: a page, JSON at /stats, Prometheus at /metrics.
///
/// It continues with the next run of the directory. Requests about a private run need a token.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    directory: directory::RunDirectory,
    /// Address and port; port 0 uses any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = LISTEN)]
    listen: SocketAddr,
    /// File with the token for requests: at least 16 letters, digits or `-._~`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Show the figures to every user of this machine
    #[arg(long, conflicts_with = "token_file")]
    no_token: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    let access = Arc::new(access(arguments, &directory)?);
    let listen = arguments.listen;
    let unusable = |error: std::io::Error| Error::Unusable(format!("{listen}: {error}"));
    let listener = TcpListener::bind(listen).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    // This comes before there are threads, so that none of them gets a signal.
    let signals = Signals::for_command(&ENDING)?;
    let pages = Arc::new(Pages::default());
    let site = FigureSite {
        pages: Arc::clone(&pages),
        is_loopback: listen.ip().is_loopback(),
        access: Arc::clone(&access),
    };
    let server = Server::new(listener, site).map_err(unusable)?;
    let served = crate::spawn(move || server.run())?;
    let query = access.query();
    let read = crate::spawn(move || follow(&directory, &pages, &access, address))?;
    say(&format!(
        "serving http://{address}/{query} with /stats and /metrics; Ctrl-C ends it"
    ));
    loop {
        if signals.next(Some(EVERY)).is_some() {
            return Ok(ExitCode::SUCCESS);
        }
        if served.is_finished() || read.is_finished() {
            let why = "the server stopped by itself, which is a bug";
            return Err(Error::Unusable(why.to_owned()));
        }
    }
}

/// Decides from the options and the run in `directory` who may read its figures: everybody, or only
/// clients with a token.
fn access(arguments: &Arguments, directory: &Path) -> Result<Access, Error> {
    let listen = arguments.listen;
    if let Some(path) = &arguments.token_file {
        return Token::read(path).map(Access::Chosen);
    }
    if !listen.ip().is_loopback() {
        return Err(Error::Unusable(format!(
            "--listen {listen}: other machines can reach this address: expected --token-file FILE, found none. \
             `(umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' > FILE)` makes one"
        )));
    }
    if arguments.no_token {
        return Ok(Access::Everybody);
    }
    // Without any fragments yet, assume that the run will be private, which is the recorder's default.
    let is_needed = has_private_fragments(directory) != Some(false);
    Token::random().map(|token| Access::random(token, is_needed))
}

/// Follows the run forever.
fn follow(directory: &Path, pages: &Pages, access: &Access, address: SocketAddr) {
    let mut reader = LiveReader::new(directory);
    // The next run of the directory may be private. Ask for the token before any of its figures are served.
    let show = |reader: &LiveReader| {
        if has_private_fragments(directory) == Some(true) && access.require_token() {
            let query = access.query();
            say(&format!(
                "some users may not read this run: from now on http://{address}/{query} shows it"
            ));
        }
        pages.show(&reader.stats(), &reader.counters());
    };
    loop {
        let timer = PollTimer::start();
        let found = reader.poll();
        show(&reader);
        // The processes have ended, so reading everything again takes nothing from them.
        if reader.finish() {
            show(&reader);
        }
        thread::sleep(timer.pause(left(&reader, &found)));
    }
}
