//! The verdict: one or two sentences on what limited the server.

use serde::Serialize;

named_enum! {
    /// Kind of answer to the question what limited the server.
    pub VerdictRule {
        /// A process was killed.
        Crash = "crash",
        /// Requests waited because the number of running ones is limited.
        ConcurrencyCapped = "concurrency_capped",
        /// Requests waited or were preempted because the KV cache was full.
        KvFull = "kv_full",
        /// A process did not run although it had work: it was stopped, or had no core.
        ProcessStalled = "process_stalled",
        /// Requests spent their time in the frontend: reading, tokenizing or returning.
        FrontendBound = "frontend_bound",
        /// Devices waited for the host to launch or prepare work.
        HostBound = "host_bound",
        /// Python's garbage collector stopped a process.
        Gc = "gc",
        /// Devices waited for another worker.
        WaitingForRank = "waiting_for_rank",
        /// Steps did not replay a graph although graphs are enabled.
        GraphFallback = "graph_fallback",
        /// Requests waited for keys and values from another instance.
        TransferBound = "transfer_bound",
        /// The server was idle most of the time.
        LittleLoad = "little_load",
        /// No rule applies.
        Nothing = "nothing",
        /// The run has no requests or no events to judge.
        Unknown = "unknown",
    }
}

/// The answer to "What limited the server?".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Rule that produced the answer.
    pub rule: VerdictRule,
    /// Answer in one sentence: what limited the server, and by how much.
    pub text: String,
    /// Advice in one sentence. Empty if there is nothing to do.
    pub advice: String,
    /// Figures that support the answer, on one line.
    pub evidence: String,
    /// Time range that shows the answer, for `sa-profile open RUN --at … --for …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<TraceRange>,
}

/// A time range in a trace that shows what a text describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceRange {
    /// Start, in ns from the start of the trace.
    pub from_ns: i64,
    /// Length, in ns.
    pub dur_ns: i64,
}

/// A time in which a process recorded nothing although requests waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// Number of the process among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// Time of its last event before the stall, in ns from the start of the trace.
    pub from_ns: i64,
    /// Time until its next event, in ns.
    pub dur_ns: i64,
    /// Number of requests that were in flight.
    pub requests: u64,
}

impl Default for Verdict {
    fn default() -> Verdict {
        Verdict {
            rule: VerdictRule::Unknown,
            text: String::new(),
            advice: String::new(),
            evidence: String::new(),
            place: None,
        }
    }
}
