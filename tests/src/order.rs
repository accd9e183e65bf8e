//! Instructions for a victim, passed as JSON on its command line.

use serde::{Deserialize, Serialize};

/// Spans that a victim's threads record.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Pattern {
    /// One span after the other at full speed.
    Flat,
    /// The same, but each thread stops after some thousands of spans.
    Sprint,
    /// Spans nested three deep, with marks for the open ones.
    Nested,
    /// Short-lived threads that record a few hundred spans each at full speed, one thread after the other, up to some thousands of spans.
    Churn,
    /// Bursts with pauses, up to the number of spans that the test allows. The threads also flush.
    Bursts,
    /// Two spans, recorded on a signal from the stepper.
    StepSpan,
    /// Three spans, a `flush()` and one more span.
    StepFlush,
    /// The first two spans of a new thread.
    StepAttach,
    /// The end of a thread that has an open span.
    StepDetach,
}

/// How a victim ends after the signal to go, while its threads keep recording.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// The victim does not end by itself.
    Never,
    /// `abort()`.
    Abort,
    /// `_exit(7)`.
    QuickExit,
    /// A write to address 0.
    Segv,
    /// `exit(8)` from the main thread.
    Exit,
    /// `exit(8)` from a recording thread.
    ExitFromThread,
    /// A panic that unwinds out of `main`.
    Panic,
    /// `main` returns without joining its threads.
    Return,
    /// The threads have ended by themselves, without being joined, before `main` returns.
    ThreadsEnd,
    /// `Recorder::finish()` while the threads record, then `main` returns.
    Finish,
}

/// Instructions for a victim.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Order {
    /// Number of recording threads.
    pub threads: usize,
    /// Spans that they record.
    pub pattern: Pattern,
    /// Ending of the process.
    pub ending: Ending,
}

impl Order {
    /// Creates an order.
    pub fn new(threads: usize, pattern: Pattern, ending: Ending) -> Self {
        Order {
            threads,
            pattern,
            ending,
        }
    }
}
