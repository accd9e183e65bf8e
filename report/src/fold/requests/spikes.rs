//! Requests → the times in which there were unusually many.

use crate::table::{LoadLevel, Request, SeriesKind, Spike, Spikes};
use std::cmp::Reverse;

/// Spikes that are told, the longest.
const TOLD: usize = 10;
/// Ids that each tells.
const IDS: usize = 100;

/// All spikes. They begin above the level's p90 and end at its p50, so that one request more or less is no spike of its own.
pub(crate) fn spikes(requests: &[Request], load: &[LoadLevel], last_ns: i64) -> Spikes {
    let mut levels = load.iter();
    let Some(level) = levels.find(|level| level.of == SeriesKind::UnderWay) else {
        return Spikes::default();
    };
    let mut times = spike_times(requests, level, last_ns);
    let n = times.len() as u64;
    times.sort_by_key(|spike| Reverse(spike.dur_ns));
    times.truncate(TOLD);
    times.sort_by_key(|spike| spike.start_ns);
    let longest = times.into_iter().map(|spike| told(spike, requests));
    Spikes {
        n,
        longest: longest.collect(),
    }
}

/// Returns the time and the peak of each spike.
fn spike_times(requests: &[Request], level: &LoadLevel, last_ns: i64) -> Vec<Spike> {
    let times = requests.iter().filter_map(|of| of.under_way_ns(last_ns));
    // At one instant ends come first.
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

fn told(spike: Spike, requests: &[Request]) -> Spike {
    let end_ns = spike.start_ns + spike.dur_ns;
    let is_in = |request: &&Request| {
        let time = request.under_way_ns(end_ns);
        time.is_some_and(|(from_ns, to_ns)| from_ns < end_ns && to_ns > spike.start_ns)
    };
    let (inside, others): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(is_in);
    let ids = inside.iter().take(IDS).map(|of| of.request_id.to_string());
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
