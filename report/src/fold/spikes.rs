//! Requests → the times in which there were unusually many.

use crate::table::{LoadLevel, Request, SeriesKind, Spike, Spikes};
use std::cmp::Reverse;

/// Spikes that are told, the longest.
const TOLD: usize = 10;
/// Ids that each tells.
const IDS: usize = 100;

/// A spike while only its time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpikeTime {
    start_ns: i64,
    end_ns: i64,
    peak: u64,
}

/// All spikes. They begin above the level's p90 and end at its p50, so that one request more or less is no spike of its own.
pub(crate) fn spikes(requests: &[Request], load: &[LoadLevel], last_ns: i64) -> Spikes {
    let mut levels = load.iter();
    let Some(level) = levels.find(|level| level.of == SeriesKind::UnderWay) else {
        return Spikes::default();
    };
    let mut times = spike_times(requests, level, last_ns);
    let n = times.len() as u64;
    times.sort_by_key(|time| Reverse(time.end_ns - time.start_ns));
    times.truncate(TOLD);
    times.sort_by_key(|time| time.start_ns);
    let longest = times.into_iter().map(|time| told(time, requests));
    Spikes {
        n,
        longest: longest.collect(),
    }
}

fn spike_times(requests: &[Request], level: &LoadLevel, last_ns: i64) -> Vec<SpikeTime> {
    let times = requests.iter().filter_map(|of| of.under_way_ns(last_ns));
    let mut begins: Vec<i64> = times.clone().map(|(from_ns, _)| from_ns).collect();
    let mut ends: Vec<i64> = times.map(|(_, to_ns)| to_ns).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let (mut begins, mut ends) = (begins.into_iter().peekable(), ends.into_iter().peekable());
    // At one instant ends come first.
    let steps = std::iter::from_fn(|| match (begins.peek(), ends.peek()) {
        (Some(from_ns), Some(to_ns)) if from_ns < to_ns => Some((begins.next()?, true)),
        _ => Some((ends.next()?, false)),
    });
    let (mut now, mut open, mut found) = (0_u64, None::<SpikeTime>, Vec::new());
    for (ns, is_begin) in steps {
        now = if is_begin { now + 1 } else { now - 1 };
        match &mut open {
            None if now as f64 > level.p90 => {
                open = Some(SpikeTime {
                    start_ns: ns,
                    end_ns: ns,
                    peak: now,
                });
            }
            Some(spike) => {
                (spike.end_ns, spike.peak) = (ns, spike.peak.max(now));
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

fn told(time: SpikeTime, requests: &[Request]) -> Spike {
    let is_in = |request: &&Request| {
        request
            .under_way_ns(time.end_ns)
            .is_some_and(|(from_ns, to_ns)| from_ns < time.end_ns && to_ns > time.start_ns)
    };
    let (inside, others): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(is_in);
    let ids = inside.iter().take(IDS).map(|of| of.request_id().to_owned());
    Spike {
        start_ns: time.start_ns,
        dur_ns: time.end_ns - time.start_ns,
        peak: time.peak,
        requests: inside.len() as u64,
        request_ids: ids.collect(),
        e2e_mean_ns: mean_e2e(&inside),
        others_e2e_mean_ns: mean_e2e(&others),
    }
}

fn mean_e2e(requests: &[&Request]) -> Option<f64> {
    let times = requests.iter().filter_map(|request| request.e2e_ns());
    let (n, sum) = times.fold((0_u64, 0.0), |(n, sum), ns| (n + 1, sum + ns as f64));
    (n > 0).then(|| sum / n as f64)
}
