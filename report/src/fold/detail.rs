//! Details of one request, step or moment, from a report and a second pass over the events.

mod device_use;
pub(crate) mod one_moment;
pub(crate) mod one_request;
pub(crate) mod one_step;

use crate::gather::detail_events::Levels;
use crate::table::{EngineAt, LoadAt, Request, RequestStatus, RunReport, SeriesKind};
use std::collections::BTreeMap;

/// Returns the load at the time `at_ns`: the numbers of requests in flight and scheduled, without the request with the
/// index `without`, and the last counter values of each engine. The number of scheduled requests is `None` if the trace
/// does not contain when any request was scheduled.
fn load_at(report: &RunReport, levels: &Levels, at_ns: i64, without: Option<usize>) -> LoadAt {
    let requests = report.request.iter().enumerate();
    let others = requests.filter(|(nth, _)| Some(*nth) != without);
    let in_flight = others.filter(|(_, request)| is_in_flight(request, at_ns));
    let is_scheduled = |request: &Request| request.scheduled_ns.is_some_and(|ns| ns <= at_ns);
    let (mut load, mut engines) = (LoadAt::default(), BTreeMap::new());
    let mut all = report.request.iter();
    load.scheduled = all
        .any(|request| request.scheduled_ns.is_some())
        .then_some(0);
    for (_, request) in in_flight {
        load.in_flight += 1;
        load.scheduled = load
            .scheduled
            .map(|n| n + usize::from(is_scheduled(request)));
    }
    for ((kind, process), edge) in &levels.0 {
        let engine: &mut EngineAt = engines.entry(*process).or_default();
        match kind {
            SeriesKind::Running => engine.running = Some(edge.value),
            SeriesKind::Waiting => engine.waiting = Some(edge.value),
            SeriesKind::KvUsedPercent => engine.kv_percent = Some(f64::from(edge.value) / 10.0),
            _ => {}
        }
    }
    let engines = engines.into_iter();
    load.engines = engines
        .map(|(process, engine)| EngineAt {
            name: report.process_name(process),
            ..engine
        })
        .collect();
    load
}

/// Returns true if the request began no later than `at_ns` and was not finished then. A request without a known begin
/// is never in flight.
fn is_in_flight(request: &Request, at_ns: i64) -> bool {
    let is_begun = request.begin_ns().is_some_and(|ns| ns <= at_ns);
    is_begun && request.finished_ns.is_none_or(|ns| at_ns < ns)
}

/// Returns the parts of a request, each with its name, its offset from the request's begin and its duration in ns. A
/// request without an end is open until `end_ns`, and so is its last part. A request that failed or was aborted ended
/// during its last part. Returns nothing if the begin is unknown.
fn parts(report: &RunReport, request: &Request, end_ns: i64) -> Vec<(String, i64, i64)> {
    let is_generated = match request.status {
        RequestStatus::Ok => true,
        RequestStatus::Unfinished => request.reason.is_some() || request.answered_ns.is_some(),
        RequestStatus::Aborted | RequestStatus::Failed => request.answered_ns.is_some(),
    };
    let whole = Request {
        arrival_ns: request.begin_ns(),
        // If the request has no end, more tokens may have followed.
        last_token_ns: request.last_token_ns.filter(|_| is_generated),
        finished_ns: request.finished_ns.or(Some(end_ns)),
        ..request.clone()
    };
    let mut parts = whole.parts().unwrap_or_default();
    if let (false, Some((name, _))) = (request.is_ok(), parts.last_mut()) {
        *name = open_part(report, name);
    }
    let mut offset_ns = 0;
    let with_offset = |(name, dur_ns): (String, i64)| {
        offset_ns += dur_ns;
        (name, offset_ns - dur_ns, dur_ns)
    };
    parts.into_iter().map(with_offset).collect()
}

/// Returns the part in which the request was last seen. `name` lists all parts that might have followed.
fn open_part(report: &RunReport, name: &str) -> String {
    let first = name.split(" + ").next().unwrap_or(name);
    let names = report.request_parts.parts.iter().map(|part| &part.name);
    // In other requests, two parts may be joined, because no event separates them.
    let candidates = names.filter(|name| name.split(" + ").any(|part| part == first));
    let shortest = candidates.min_by_key(|name| name.len());
    shortest.map_or(first, String::as_str).to_owned()
}
