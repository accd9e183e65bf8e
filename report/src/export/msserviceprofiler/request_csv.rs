//! `request.csv`: a row for each request.

use super::ms;
use crate::csv_file::{CsvFile, maybe};
use crate::export::trace_clock::TraceClock;
use crate::table::request::Request;
use trace_merge::Error;

const COLUMNS: [&str; 9] = [
    "http_rid",
    "start_datetime",
    "recv_token_size",
    "reply_token_size",
    "execution_time(ms)",
    "queue_wait_time(ms)",
    "first_token_latency(ms)",
    "cache_hit_rate",
    "start_time(ms)",
];

pub(super) fn csv(requests: &[Request], clock: TraceClock) -> Result<String, Error> {
    let mut file = CsvFile::new(&COLUMNS)?;
    for request in requests {
        file.put(row(request, clock))?;
    }
    file.finish()
}

fn row(request: &Request, clock: TraceClock) -> [String; 9] {
    let start_ns = request.arrival_ns().or(request.queued_ns());
    // What waits behind a preemption waits in the queue.
    let waited_ns = request
        .queue_ns()
        .map(|ns| ns.saturating_add(request.preempted_ns()));
    let cached = request.cached_tokens().zip(request.prompt_tokens());
    let cached = cached.filter(|(_, prompt)| *prompt > 0);
    [
        request.request_id().to_owned(),
        maybe(start_ns.and_then(|ns| clock.date(ns))),
        maybe(request.prompt_tokens()),
        maybe(request.output_tokens()),
        maybe(request.e2e_ns().map(ms)),
        maybe(waited_ns.map(ms)),
        maybe(request.ttft_ns().or(request.engine_ttft_ns()).map(ms)),
        maybe(cached.map(|(cached, prompt)| cached as f64 / prompt as f64)),
        maybe(start_ns.map(|ns| clock.ms(ns))),
    ]
}
