//! Tail latency at a steady pace, beside a control that only reads the clock twice.

use measure::Kind;
use measure::peer::{Control, Peer, each};
use measure::tail::{PERIOD_NS, Paced};
use sa_recorder::Recorder;

use crate::spans;

/// Marks a child's command line: `FLAG span|control SECONDS`.
pub(crate) const FLAG: &str = "--tail-in-child";

/// Runs one child and prints its [`Tail`](measure::tail::Tail).
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
    let (mut paced, steps) = Paced::new(seconds * 1_000_000_000 / PERIOD_NS);
    match kind {
        "span" => each(0..steps, &mut paced, |_| spans::span_1arg(1)),
        _ => Control.record(Kind::Span, 0..steps, &mut paced),
    }
    println!("{}", paced.tail());
    Ok(())
}
