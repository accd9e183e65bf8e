//! Tail latency at a steady pace, beside a control that only reads the clock twice.

use std::hint::black_box;

use sa_recorder::Recorder;

use crate::clock::wall_ns;
use crate::spans;
use crate::stats::rank;

/// Marks a child's command line: `FLAG span|control SECONDS`.
pub(crate) const FLAG: &str = "--tail-in-child";

/// 50,000 spans a second.
const PERIOD_NS: u64 = 20_000;

/// The quantiles of one run, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub(crate) p50: f64,
    pub(crate) p999: f64,
    pub(crate) p9999: f64,
    pub(crate) max: f64,
}

/// Runs one child and prints `TAIL <p50> <p99.9> <p99.99> <max>` in ns.
pub(crate) fn child(kind: &str, seconds: &str) -> Result<(), String> {
    let seconds: u64 = seconds
        .parse()
        .map_err(|error| format!("{seconds}: {error}"))?;
    let recorder = Recorder::init();
    if recorder.is_enabled() != (kind == "span") {
        return Err(format!(
            "{kind}: recording is on: {}",
            recorder.is_enabled()
        ));
    }
    let tail = match kind {
        "span" => paced(seconds, || spans::span_1arg(1)),
        _ => paced(seconds, || {
            black_box(wall_ns());
            black_box(wall_ns());
        }),
    };
    println!(
        "TAIL {} {} {} {}",
        tail.p50, tail.p999, tail.p9999, tail.max
    );
    Ok(())
}

/// Parses a child's line.
pub(crate) fn parse(line: &str) -> Option<Tail> {
    let mut fields = line.strip_prefix("TAIL ")?.split(' ').map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Tail {
        p50: next()?,
        p999: next()?,
        p9999: next()?,
        max: next()?,
    })
}

/// Times each call of `event`. The thread spins to its next turn; after a stall it catches up, so the pace holds on average.
fn paced(seconds: u64, event: impl Fn()) -> Tail {
    let count = seconds * 1_000_000_000 / PERIOD_NS;
    let mut taken_ns = vec![0_u64; usize::try_from(count).expect("a few million")];
    taken_ns.fill(1); // touches the pages
    for _ in 0..1_000 {
        event();
    }
    let mut turn = wall_ns();
    for slot in &mut taken_ns {
        turn += PERIOD_NS;
        while wall_ns() < turn {
            std::hint::spin_loop();
        }
        let start = wall_ns();
        event();
        *slot = wall_ns() - start;
    }
    taken_ns.sort_unstable();
    let at = |share: f64| taken_ns[rank(taken_ns.len(), share)] as f64;
    Tail {
        p50: at(0.5),
        p999: at(0.999),
        p9999: at(0.9999),
        max: at(1.0),
    }
}
