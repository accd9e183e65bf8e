//! A program that uses simulated NPUs like a serving worker, for the tests of launch timing. Its output does not depend on whether it is timed.
//!
//! Usage: `npu MODE [ARGUMENT]...`. With `NPU_BARE=1` it makes the same calls without timing them.
#![expect(unsafe_code, reason = "calls the runtime's functions")]
#![expect(clippy::print_stdout, reason = "a program whose output is compared")]

mod launches;
mod replays;
mod session;

use sa_recorder::Recorder;
use session::Session;
use std::process::ExitCode;

/// Exit code of a program that completed its task.
const DONE: u8 = 7;

fn main() -> ExitCode {
    Recorder::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().expect("a mode").as_str();
    let number = |text: &String| text.parse().expect("a number");
    let numbers: Vec<u64> = arguments[1..].iter().map(number).collect();
    match (mode, numbers.as_slice()) {
        ("launches", [count, streams]) => launches::many(*count, *streams),
        ("paced", [count, pause_us]) => launches::paced(*count, *pause_us),
        ("added", [count]) => launches::added(*count),
        ("codes", [count]) => launches::codes(*count),
        ("resets", [rounds]) => launches::resets(*rounds),
        ("killed", [count]) => launches::killed(*count),
        ("nested", [count]) => launches::nested(*count),
        ("shared", [count]) => launches::shared(*count),
        ("two-devices", [count]) => launches::two_devices(*count),
        ("profiler-first", []) => launches::behind_a_profiler(),
        ("replayed", size) => replays::replayed(three(size)),
        ("replayed-with-collectives", [busy, size @ ..]) => {
            replays::with_collectives(*busy, three(size), false);
        }
        ("replayed-and-gone", [busy, size @ ..]) => {
            replays::with_collectives(*busy, three(size), true);
        }
        ("replayed-and-switched", [count]) => replays::switched(*count),
        ("replayed-beside-another-device", [replays]) => replays::next_to_a_device(*replays),
        _ => panic!("npu: unknown mode {arguments:?}"),
    }
    ExitCode::from(DONE)
}

fn three(numbers: &[u64]) -> replays::Size {
    numbers.try_into().expect("three numbers")
}

/// Ends the session like a well-behaved program.
fn end(session: Session) {
    session.synchronize();
    session.close();
}
