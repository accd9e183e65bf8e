//! The cost of recording, compared with the minimum of two clock reads: `cargo bench -p sa-recorder
//! --bench record [-- [--quick] [CASE]...]`.
//!
//! A process has only one recorder, so every case runs in fresh child processes of this binary,
//! interleaved over several passes. Each round measures the minimum directly before and after the
//! case in the same threads. The ratio is taken per round, because other load on the machine
//! affects both. No event may be dropped. Prints lines `RESULT <case> <ns_per_span>
//! <ratio_to_two_clock_reads>` with medians over the rounds. docs/overhead.md describes the tails
//! and other recorders.

use std::hint::black_box;
use std::process::ExitCode;

use measure::cases::{self, Case, Subject};
use sa_recorder::{Args, AsyncSpan, Level, Recorder, async_span, instant, span};

const CASES: [Case<Ours>; 9] = [
    Case::new("span_1arg_1t", spans),
    Case {
        threads: 2,
        ..Case::new("span_1arg_2t", spans)
    },
    Case {
        threads: 8,
        ..Case::new("span_1arg_8t", spans)
    },
    Case {
        events: 8_300_000,
        rounds: 1,
        ..Case::new("span_sustained_1gb", spans)
    },
    Case::new("instant", instants),
    Case::new("async_span", async_spans),
    Case::new("async_child", async_children),
    Case::silent("disabled", spans, false),
    Case::silent("filtered", verbose_spans, true),
];

fn main() -> ExitCode {
    cases::run(&CASES)
}

struct Ours(Recorder);

impl Subject for Ours {
    fn start() -> Result<Self, String> {
        Ok(Ours(Recorder::init()))
    }

    fn is_enabled(&self) -> bool {
        self.0.is_enabled()
    }

    fn settle(&self) {
        self.0.flush();
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

fn spans(_: &Ours, count: u64) {
    for step in 0..count {
        black_box(&span!("bench", "decode", step = step));
    }
}

fn verbose_spans(_: &Ours, count: u64) {
    for step in 0..count {
        black_box(&span!(verbose, "bench", "decode", step = step));
    }
}

fn instants(_: &Ours, count: u64) {
    for step in 0..count {
        instant!("bench", "token", step = black_box(step));
    }
}

/// Records spans on lanes of their own.
fn async_spans(_: &Ours, count: u64) {
    for step in 0..count {
        black_box(&async_span!("bench", "decode", step = step));
    }
}

/// Records spans inside one that is open on a lane, named at run time.
fn async_children(_: &Ours, count: u64) {
    let task = async_span!("task", "task");
    let (category, name) = (black_box("bench"), black_box("decode"));
    for step in 0..count {
        let args = Args::new().with("step", step);
        let parent = Some(&task);
        let child = AsyncSpan::open_at(Level::E2e, category, name, parent, None, &args);
        black_box(&child);
    }
}
