//! A program that uses simulated NPUs as a serving worker does, for the tests of launch timing. What it prints never depends on whether it is timed.
//!
//! `npu MODE [ARGUMENT]...`; `NPU_BARE=1` makes the same calls without timing any.
#![expect(unsafe_code, reason = "calls the runtime's functions")]
#![expect(clippy::print_stdout, reason = "a program whose output is compared")]

mod launches;
mod replays;
mod session;

use sa_recorder::Recorder;
use session::Session;
use std::process::ExitCode;

/// The exit code of a program that did what it was asked to.
const DONE: u8 = 7;

fn main() -> ExitCode {
    Recorder::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match arguments.as_slice() {
        ["launches", count, streams] => launches::many(number(count), number(streams)),
        ["paced", count, pause_us] => launches::paced(number(count), number(pause_us)),
        ["added", count] => launches::added(number(count)),
        ["codes", count] => launches::codes(number(count)),
        ["resets", rounds] => launches::resets(number(rounds)),
        ["killed", count] => launches::killed(number(count)),
        ["nested", count] => launches::nested(number(count)),
        ["shared", count] => launches::shared(number(count)),
        ["two-devices", count] => launches::two_devices(number(count)),
        ["profiler-first", ..] => launches::behind_a_profiler(),
        ["replayed", rest @ ..] => replays::replayed(size(rest)),
        ["replayed-with-collectives", busy, end, rest @ ..] => {
            let busy = usize::try_from(number(busy)).expect("few");
            replays::with_collectives(size(rest), busy, *end == "gone");
        }
        ["replayed-and-switched", count] => replays::switched(number(count)),
        ["replayed-beside-another-device", replays] => replays::beside_a_device(number(replays)),
        ["replayed-and-killed", rest @ ..] => replays::killed(size(rest)),
        ["capture-in-between", count] => launches::captures_in_between(number(count)),
        _ => {
            println!("npu: unknown mode {arguments:?}");
            return ExitCode::from(64);
        }
    }
    ExitCode::from(DONE)
}

/// Kernels of a graph, replays of each, launches behind each.
fn size(arguments: &[&str]) -> replays::Size {
    let number = |at: usize| arguments[at].parse().expect("a number");
    replays::Size {
        kernels: number(0),
        replays: number(1),
        launches: number(2),
    }
}

/// Ends as a program should.
fn end(session: Session) {
    session.synchronize();
    session.close();
}
