//! The figures of a request that runs are compared by.

use super::request::Request;
use serde::Serialize;

/// A figure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// See [`Request::queue_ns`], and so on.
    Queue,
    /// See there.
    Prefill,
    /// See there.
    Decode,
    /// See there.
    EngineTtft,
    /// See there.
    Ttft,
    /// See there.
    Tpot,
    /// Times between tokens, those of all requests together.
    Itl,
    /// See there.
    E2e,
}

impl Metric {
    pub(crate) const ALL: [Metric; 8] = [
        Metric::Queue,
        Metric::Prefill,
        Metric::Decode,
        Metric::EngineTtft,
        Metric::Ttft,
        Metric::Tpot,
        Metric::Itl,
        Metric::E2e,
    ];

    /// What `--fail-if` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Queue => "queue",
            Metric::Prefill => "prefill",
            Metric::Decode => "decode",
            Metric::EngineTtft => "engine_ttft",
            Metric::Ttft => "ttft",
            Metric::Tpot => "tpot",
            Metric::Itl => "itl",
            Metric::E2e => "e2e",
        }
    }

    /// That of one request; times between tokens are of all.
    pub(crate) fn of(self, request: &Request) -> Option<i64> {
        match self {
            Metric::Queue => request.queue_ns(),
            Metric::Prefill => request.prefill_ns(),
            Metric::Decode => request.decode_ns(),
            Metric::EngineTtft => request.engine_ttft_ns(),
            Metric::Ttft => request.ttft_ns(),
            Metric::Tpot => request.tpot_ns(),
            Metric::Itl => None,
            Metric::E2e => request.e2e_ns(),
        }
    }
}
