//! A host program for the end-to-end tests: it executes commands, prints fixed answers and exits with code 7.
//!
//! Usage: `host [--lazy] COMMAND [ARGUMENT]...`. With `--lazy`, recording begins at the first event or at the command `init`.
//!
//! The command `script` reads further commands from stdin, one per line (`script.rs`). The answers do not depend on whether the host is recorded, so a test can
//! compare both cases. Every span carries the label and index of its place in the program and the pid that the host saw, so that a test can detect missing and
//! duplicated spans.
#![expect(
    unsafe_code,
    reason = "forks, limits and descriptors have no safe interface"
)]
#![expect(clippy::print_stdout, reason = "a program whose output is compared")]

mod crowd;
mod daemon;
mod forks;
mod lanes;
mod odd;
mod open_spans;
mod refusals;
mod restarts;
mod sandbox;
mod script;
mod starved;
mod switched;
mod tracks;
mod victim;
mod work;

use sa_recorder::Recorder;
use script::Script;
use std::process::ExitCode;

/// Exit code of a host that completed its commands.
const DONE: u8 = 7;

fn main() -> ExitCode {
    let mut command: Vec<String> = std::env::args().skip(1).collect();
    if command[0] == "--lazy" {
        command.remove(0);
    } else {
        Recorder::init();
    }
    let mut script = Script::default();
    if command != ["script"] {
        println!("{}", script.obey(&command.join(" ")));
        return ExitCode::from(DONE);
    }
    for line in std::io::stdin().lines() {
        println!("{}", script.obey(&line.expect("stdin is readable")));
    }
    ExitCode::from(DONE)
}

/// Runs one of the commands that work without further control, for tests that only examine the recording.
fn run(command: &[&str]) {
    match *command {
        ["rounds", count] => open_spans::rounds(number(count)),
        ["oversized"] => odd::oversized(),
        ["little-memory-then-killed"] => odd::little_memory_then_killed(),
        ["unfit"] => odd::unfit(),
        ["panicking"] => odd::panicking(),
        ["exchange", one, other, stop] => odd::exchange(one, other, stop),
        ["many-sites-then-killed"] => odd::many_sites_then_killed(),
        ["tasks", threads, tasks, spans] => {
            lanes::tasks(number(threads), number(tasks), number(spans));
        }
        ["named-lanes", count] => lanes::named(number(count)),
        ["tracks", name, count] => tracks::launches(name, number(count)),
        ["steady", threads] => switched::steady(number(threads)),
        ["fork-busy", forks] => forks::busy(number(forks)),
        ["serve", file, count] => daemon::serve(file, number(count)),
        ["threads", threads, count] => crowd::at_once(number(threads), number(count), || {}),
        ["threads-then-killed", threads, count] => {
            crowd::at_once(number(threads), number(count), work::die);
        }
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
        ["restart-forks", dir, cycles] => restarts::forks(dir, number(cycles)),
        ["victim", progress, order] => victim::run(progress, order),
        _ => panic!("host: unknown command {command:?}"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a count in decimal")
}
