//! A host program for the end-to-end tests: it does one thing, prints a fixed line about it and ends with exit code 7.
//!
//! `host [--gate] [--lazy] [--exit-on-term] [--umask OCTAL] [--limit WHAT=VALUE] MODE [ARGUMENT]...`
//!
//! What it prints never depends on whether it is recorded, so a test can compare both ways. Every span carries the label and
//! index of its place in the program and the pid that the host itself saw, so a test can tell what is missing or doubled.
#![expect(
    unsafe_code,
    reason = "forks, limits and descriptors have no safe interface"
)]
#![expect(clippy::print_stdout, reason = "a program whose output is compared")]

mod crowd;
mod daemon;
mod descendants;
mod forks;
mod lanes;
mod odd;
mod open_args;
mod options;
mod refusals;
mod restarts;
mod sandbox;
mod script;
mod stack;
mod starved;
mod switched;
mod tracks;
mod work;

use options::Options;
use sa_recorder::Recorder;
use std::process::ExitCode;

/// The exit code of a host that did what it was asked to.
const DONE: u8 = 7;

fn main() -> ExitCode {
    let (options, mode) = Options::parse(std::env::args().skip(1));
    options.apply();
    if !options.lazy {
        Recorder::init();
    }
    let mode: Vec<&str> = mode.iter().map(String::as_str).collect();
    match run(&mode) {
        Some(code) => ExitCode::from(code),
        None => {
            println!("host: unknown mode {mode:?}");
            ExitCode::from(64)
        }
    }
}

/// Runs one mode; `None` if there is none of that name and shape.
fn run(mode: &[&str]) -> Option<u8> {
    match *mode {
        ["spans", label, count] => work::spans(label, number(count)),
        ["killed", label, count] => work::killed(label, number(count)),
        ["rounds", count] => stack::rounds(number(count)),
        ["open-many", ending, spans, requests] => {
            stack::open_many(ending, number(spans), number(requests));
        }
        ["open-args", ending] => open_args::then(ending),
        ["oversized"] => odd::oversized(),
        ["rights", label, count] => odd::rights(label, number(count)),
        ["little-memory-then-killed"] => odd::little_memory_then_killed(),
        ["unfit"] => odd::unfit(),
        ["panicking"] => odd::panicking(),
        ["exchange", one, other, stop] => odd::exchange(one, other, stop),
        ["many-sites-then-killed"] => odd::many_sites_then_killed(),
        ["tasks", threads, tasks, spans] => {
            lanes::tasks(number(threads), number(tasks), number(spans));
        }
        ["open-lanes", ending] => lanes::open_then(ending),
        ["named-lanes", count] => lanes::named(number(count)),
        ["tracks", name, count] => tracks::launches(name, number(count)),
        ["steady", threads] => switched::steady(number(threads)),
        ["script"] => script::run(),
        ["fork", ending, count] => forks::once(ending, number(count)),
        ["drop-rights", ending, user, count] => {
            forks::drop_rights(ending, user.parse().expect("a uid"), number(count));
        }
        ["fork-named", way, name] => forks::named(way, name),
        ["fork-busy", forks] => forks::busy(number(forks)),
        ["fork-open"] => forks::open(),
        ["exec", count] => forks::exec(number(count)),
        ["processes", count] => descendants::many(number(count)),
        ["daemon", file, count] => daemon::run(file, number(count)),
        ["threads", threads, count] => crowd::at_once(number(threads), number(count)),
        ["threads-then-killed", threads, count] => crowd::killed(number(threads), number(count)),
        ["short-threads", threads] => crowd::one_by_one(number(threads)),
        ["paced", threads, burst, ticks] => {
            crowd::paced(number(threads), number(burst), number(ticks));
        }
        ["long", burst, ticks, begin, end] => {
            crowd::long(number(burst), number(ticks), number(begin), number(end));
        }
        ["refused", when, call, error] => refusals::run(when, number(call), number(error)),
        ["restart-stress", dir, threads, cycles] => {
            restarts::stress(dir, number(threads), number(cycles));
        }
        ["restart-open", dir] => restarts::open(dir),
        ["restart-many", dir, cycles] => restarts::many(dir, number(cycles)),
        ["restart-forks", dir, cycles] => restarts::forks(dir, number(cycles)),
        ["starved", number] => starved::run(self::number(number)),
        ["merge", dir] => return Some(work::merge(dir)),
        _ => return None,
    }
    Some(DONE)
}

fn number(text: &str) -> u64 {
    text.parse().expect("a count in decimal")
}
