//! End-to-end tests over real processes: kills, forks, limits, hostile files, a simulated NPU.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "tests print their results and may panic; times fit"
)]

use e2e::host_support::{Host, Live};
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::Victim;
use std::path::Path;

mod bound;
mod control;
mod crash;
mod crowd;
mod disk;
mod environment;
mod exchange;
mod faults;
mod file_systems;
mod fork;
mod identity;
mod lanes;
mod limits;
mod live;
mod memory;
mod npu;
mod odd;
mod pages;
mod privileges;
mod refused;
mod restart;
mod ring_damage;
mod runs;
mod security;
mod snapshot;
mod soak;
mod stack;
mod stalled;
mod starved;
mod stepper;
mod tracks;
mod window;

const HOST: &str = env!("CARGO_BIN_EXE_host");
/// A user without any special rights.
const NOBODY: u32 = 65534;

/// Prepares a host that executes one command and records into a directory.
fn host(dir: &Path, arguments: &[&str]) -> Host {
    Host::new(HOST).arguments(arguments).recorded_in(dir)
}

/// Starts a host that executes commands line by line.
fn script(dir: &Path) -> Live {
    host(dir, &["script"]).start()
}

/// Starts a host for commands that obeys controls while it is idle.
fn listening_script(dir: &Path) -> Live {
    let host = host(dir, &["script"]);
    host.variable("SA_PROFILE_THREADS", "1").start()
}

/// Starts a victim that keeps recording, and waits until all of its threads do.
fn victim(threads: usize, pattern: Pattern, variables: &[(&str, &str)]) -> Victim {
    let order = Order::new(threads, pattern, Ending::Never);
    let victim = Victim::start(HOST, order, variables);
    victim.wait_ready();
    victim
}
