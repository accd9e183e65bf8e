//! The orders of a victim, which are JSON on its command line.

use serde::{Deserialize, Serialize};

/// What a victim's threads record.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Pattern {
    /// One span after the other at full speed.
    Flat,
    /// The same, but only the first thousands of spans of each thread.
    Sprint,
    /// Spans nested three deep, with marks about which are open.
    Nested,
    /// At full speed by threads that live for a few hundred spans and are followed by others, some thousands of spans in all.
    Churn,
    /// Bursts with pauses between them, up to what the test allows; the threads call for flushes themselves.
    Bursts,
    /// Two spans when told to, for the stepper.
    StepSpan,
    /// Three spans, a `flush()` and one more span.
    StepFlush,
    /// The first two spans of a new thread.
    StepAttach,
    /// The end of a thread that leaves a span open.
    StepDetach,
}

/// How a victim ends once it is told to go, while its threads go on recording.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// It does not end by itself.
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
    /// The threads have ended by themselves, unjoined, before `main` returns.
    ThreadsEnd,
    /// `Recorder::finish()` while the threads record, then `main` returns.
    Finish,
}

/// What a victim is to do.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Order {
    /// Recording threads.
    pub threads: usize,
    /// What they record.
    pub pattern: Pattern,
    /// How the process ends.
    pub ending: Ending,
}

impl Order {
    /// Makes an order from its parts.
    pub fn new(threads: usize, pattern: Pattern, ending: Ending) -> Self {
        Order {
            threads,
            pattern,
            ending,
        }
    }
}
