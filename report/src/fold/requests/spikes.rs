//! Finds the times in which unusually many requests were in flight.

use crate::table::{LoadLevel, Request, SeriesKind, Spike, Spikes};
use std::cmp::Reverse;

/// Maximum number of listed spikes. The longest ones are listed.
const MOST_LISTED: usize = 10;
/// Maximum number of request ids listed per spike.
const IDS: usize = 100;

/// Returns all spikes. A spike starts above the level's p90 and ends at its p50, so that one request more or less does
/// not start a new spike.
pub(crate) fn spikes(requests: &[Request], load: &[LoadLevel], last_ns: i64) -> Spikes {
    let mut levels = load.iter();
    let Some(level) = levels.find(|level| level.of == SeriesKind::InFlight) else {
        return Spikes::default();
    };
    let mut times = spike_times(requests, level, last_ns);
    let n = times.len() as u64;
    times.sort_by_key(|spike| Reverse(spike.dur_ns));
    times.truncate(MOST_LISTED);
    times.sort_by_key(|spike| spike.start_ns);
    let longest = times
        .into_iter()
        .map(|spike| with_requests(spike, requests));
    Spikes {
        n,
        longest: longest.collect(),
    }
}

/// Returns the time and the peak of each spike.
fn spike_times(requests: &[Request], level: &LoadLevel, last_ns: i64) -> Vec<Spike> {
    let times = requests
        .iter()
        .filter_map(|request| request.in_flight_ns(last_ns));
    // At the same time, ends sort before starts.
    let edges = times.flat_map(|(from_ns, to_ns)| [(from_ns, true), (to_ns, false)]);
    let mut edges: Vec<(i64, bool)> = edges.collect();
    edges.sort_unstable();
    let (mut now, mut open, mut found) = (0_u64, None::<Spike>, Vec::new());
    for (ns, is_begin) in edges {
        now = if is_begin { now + 1 } else { now - 1 };
        match &mut open {
            None if now as f64 > level.p90 => {
                open = Some(Spike {
                    start_ns: ns,
                    peak: now,
                    ..Spike::default()
                });
            }
            Some(spike) => {
                (spike.dur_ns, spike.peak) = (ns - spike.start_ns, spike.peak.max(now));
                if now as f64 <= level.p50 {
                    found.extend(open.take());
                }
            }
            None => {}
        }
    }
    found.extend(open);
    found
}

/// Fills in the requests of a spike and their mean E2E.
fn with_requests(spike: Spike, requests: &[Request]) -> Spike {
    let end_ns = spike.start_ns + spike.dur_ns;
    let is_in = |request: &&Request| {
        let time = request.in_flight_ns(end_ns);
        time.is_some_and(|(from_ns, to_ns)| from_ns < end_ns && to_ns > spike.start_ns)
    };
    let (inside, others): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(is_in);
    let ids = inside
        .iter()
        .take(IDS)
        .map(|request| request.request_id.to_string());
    Spike {
        requests: inside.len() as u64,
        request_ids: ids.collect(),
        e2e_mean_ns: mean_e2e(&inside),
        others_e2e_mean_ns: mean_e2e(&others),
        ..spike
    }
}

fn mean_e2e(requests: &[&Request]) -> Option<f64> {
    let times = requests.iter().filter_map(|request| request.e2e_ns());
    let (n, sum) = times.fold((0_u64, 0.0), |(n, sum), ns| (n + 1, sum + ns as f64));
    (n > 0).then(|| sum / n as f64)
}
