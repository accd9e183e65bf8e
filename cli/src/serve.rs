//! `sa-profile serve`: the figures of a run while it goes on, as a page, as JSON and for Prometheus.

mod connection;
mod pages;
mod request;
mod response;
mod server;
mod token;

use crate::directory;
use crate::error::Error;
use crate::pace::{EVERY, Look, left};
use crate::signals::Signals;
use crate::words::say;
use nix::sys::signal::Signal;
use pages::Pages;
use request::Access;
use server::Server;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use token::Token;
use trace_report::live::LiveReader;

/// Beside the port of `sa-profile open`.
const LISTEN: &str = "127.0.0.1:9002";

const EXAMPLES: &str = "\
Examples:
  sa-profile serve profile_out                 http://127.0.0.1:9002/
  curl -s http://127.0.0.1:9002/stats          JSON
  curl -s http://127.0.0.1:9002/metrics        what Prometheus scrapes
  (umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' > token)
  sa-profile serve --listen 0.0.0.0:9002 --token-file token profile_out
  curl -H \"Authorization: Bearer $(cat token)\" http://HOST:9002/stats

Exit status: 0 ended by Ctrl-C; 2 nothing can be served.";

/// Serves the figures of a live run: a page, JSON at /stats, Prometheus at /metrics.
///
/// It goes on with the next run of the directory. Beyond this machine it asks for a token.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    directory: directory::RunDirectory,
    /// Address and port; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = LISTEN)]
    listen: SocketAddr,
    /// A file with the token of requests: 16 or more of letters, digits and `-._~`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Carries the command out.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.resolve()?;
    let access = access(arguments.listen, arguments.token_file.as_deref())?;
    let listen = arguments.listen;
    let unusable = |error: std::io::Error| Error::Unusable(format!("{listen}: {error}"));
    let listener = TcpListener::bind(listen).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    // Before there are threads, so that none of them gets a signal.
    let signals = Signals::collect(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let signals = signals.map_err(|error| Error::Unusable(format!("signals: {error}")))?;
    let pages = Arc::new(Pages::default());
    let server = Server::new(listener, access, Arc::clone(&pages)).map_err(unusable)?;
    let served = thread::spawn(move || server.run());
    let read = thread::spawn(move || follow(&directory, &pages));
    say(&format!(
        "serving http://{address}/ with /stats and /metrics; Ctrl-C ends it"
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

/// Who may ask.
fn access(listen: SocketAddr, token_file: Option<&Path>) -> Result<Access, Error> {
    let token = token_file.map(Token::read).transpose()?;
    let is_loopback = listen.ip().is_loopback();
    if !is_loopback && token.is_none() {
        return Err(Error::Unusable(format!(
            "--listen {listen}: others reach this address: expected --token-file FILE, found none. \
             `(umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' > FILE)` makes one"
        )));
    }
    Ok(Access { is_loopback, token })
}

/// Reads the run for ever.
fn follow(directory: &Path, pages: &Pages) {
    let mut reader = LiveReader::new(directory);
    loop {
        let look = Look::begin();
        let found = reader.poll();
        pages.show(&reader.stats(), &reader.counters());
        // The server has ended: to read all of it again takes nothing from it.
        if reader.finish() {
            pages.show(&reader.stats(), &reader.counters());
        }
        thread::sleep(look.rest(left(&reader, &found)));
    }
}
