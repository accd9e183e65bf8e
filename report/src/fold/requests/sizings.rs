//! Fits how the times of requests grow with the number of requests in flight.

use crate::options::Slo;
use crate::statistics::quantiles::Quantiles;
use crate::table::{Metric, Request, Sizing, SizingFit, SizingPoint, SizingRefusal};

/// Times for which a sizing is computed.
const METRICS: [Metric; 4] = [Metric::EngineTtft, Metric::Ttft, Metric::Tpot, Metric::E2e];
/// Number of equally wide ranges into which the levels of concurrency are divided.
const PARTS: i64 = 20;
/// Minimum number of requests per point. With fewer requests, the p95 is just the longest time.
const LEAST_REQUESTS: usize = 20;
/// Minimum number of points. A line fits any two points.
const LEAST_POINTS: usize = 3;
/// Minimum share of the variance that the line explains, as in NeMo Agent Toolkit's sizing.
const LEAST_R_SQUARED: f64 = 0.7;

/// Returns the sizing for each time that any answered request has.
pub(crate) fn sizings(requests: &[Request], slo: Option<Slo>) -> Vec<Sizing> {
    let levels = levels(requests);
    let find_sizing = |metric: &Metric| {
        let answered = requests.iter().zip(&levels);
        let answered = answered.filter(|(request, _)| request.is_ok());
        let answered = answered.filter(|(_, level)| **level > 0);
        let values: Vec<(u32, i64)> = answered
            .filter_map(|(request, level)| Some((*level, metric.value(request)?)))
            .collect();
        let target_ns = slo.and_then(|slo| match metric {
            Metric::Ttft => slo.ttft_ns,
            Metric::Tpot => slo.tpot_ns,
            Metric::E2e => slo.e2e_ns,
            _ => None,
        });
        (!values.is_empty()).then(|| sizing(*metric, values, target_ns))
    };
    METRICS.iter().filter_map(find_sizing).collect()
}

/// Times in ascending order, with the sum of all times before each block. A sum before each time would double the
/// memory.
struct Times {
    sorted: Vec<i64>,
    /// Sum of all times before each block of [`BLOCK`] times.
    sums: Vec<i128>,
}

/// Number of times in a block.
const BLOCK: usize = 64;

impl Times {
    fn new(mut sorted: Vec<i64>) -> Times {
        sorted.sort_unstable();
        let mut sum = 0;
        let mut sums = Vec::with_capacity(sorted.len() / BLOCK + 1);
        for block in sorted.chunks(BLOCK) {
            sums.push(sum);
            sum += block.iter().map(|ns| i128::from(*ns)).sum::<i128>();
        }
        sums.push(sum);
        Times { sorted, sums }
    }

    /// Returns the total age of these times at `ns`. Later times do not count.
    fn total_age_at(&self, ns: i64) -> i128 {
        let n = self.sorted.partition_point(|time_ns| *time_ns <= ns);
        let block = n / BLOCK;
        let rest = self.sorted[block * BLOCK..n].iter();
        let sum = self.sums[block] + rest.map(|ns| i128::from(*ns)).sum::<i128>();
        n as i128 * i128::from(ns) - sum
    }
}

/// Returns, for each request, the mean number of requests that were in flight during it, including itself, rounded.
/// Returns 0 for a request without a duration.
fn levels(requests: &[Request]) -> Vec<u32> {
    let time_of = |request: &Request| request.in_flight_ns(i64::MAX);
    let times = requests.iter().filter_map(time_of);
    let begins = Times::new(times.clone().map(|(from_ns, _)| from_ns).collect());
    let ends = Times::new(times.map(|(_, to_ns)| to_ns).collect());
    let sum_at = |ns| begins.total_age_at(ns) - ends.total_age_at(ns);
    let level = |request: &Request| {
        let (from_ns, to_ns) = time_of(request)?;
        request.finished_ns?;
        let (sum, ns) = (
            sum_at(to_ns) - sum_at(from_ns),
            i128::from(to_ns) - i128::from(from_ns),
        );
        u32::try_from((2 * sum + ns) / (2 * ns)).ok()
    };
    let levels = requests.iter().map(|request| level(request).unwrap_or(0));
    levels.collect()
}

/// Returns the sizing of a metric, from pairs of a level and a time.
fn sizing(metric: Metric, values: Vec<(u32, i64)>, target_ns: Option<i64>) -> Sizing {
    let n = values.len() as u64;
    let points = points(values);
    let in_points: u64 = points.iter().map(|point| point.requests).sum();
    let fit = fit(&points);
    let refused = refused(&points, fit);
    let advice = fit.filter(|_| refused.is_none()).zip(target_ns);
    let highest = points.last().map_or(0.0, |point| point.concurrency);
    let found = advice.map(|(fit, target_ns)| (target_ns as f64 - fit.intercept_ns) / fit.slope_ns);
    Sizing {
        of: metric,
        left_out: n - in_points,
        fit,
        refused,
        target_ns,
        concurrency: found.map(|found| whole(found.min(highest))),
        is_beyond: found.is_some_and(|found| found >= highest),
        points,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is at least 0 and at most a number of requests"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0).floor() as u64
}

/// Groups requests with about the same level into points.
fn points(mut values: Vec<(u32, i64)>) -> Vec<SizingPoint> {
    values.sort_unstable();
    let least = values.first().map_or(0, |(level, _)| i64::from(*level));
    let most = values.last().map_or(0, |(level, _)| i64::from(*level));
    let part = |level: u32| PARTS * (i64::from(level) - least) / (most - least + 1);
    let parts = values.chunk_by(|one, other| part(one.0) == part(other.0));
    let enough = parts.filter(|part| part.len() >= LEAST_REQUESTS);
    let point = |part: &[(u32, i64)]| SizingPoint {
        concurrency: part.iter().map(|(level, _)| i64::from(*level)).sum::<i64>() as f64
            / part.len() as f64,
        requests: part.len() as u64,
        p95_ns: Quantiles::from_values(part.iter().map(|(_, ns)| *ns).collect()).p95_ns,
    };
    enough.map(point).collect()
}

/// Fits a line by least squares. Each point has the same weight.
fn fit(points: &[SizingPoint]) -> Option<SizingFit> {
    let n = points.len() as f64;
    let mean = |value: fn(&SizingPoint) -> f64| points.iter().map(value).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|point| point.concurrency), mean(|point| point.p95_ns));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let (x, y) = (point.concurrency - mean_x, point.p95_ns - mean_y);
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    (xx > 0.0).then(|| SizingFit {
        slope_ns: xy / xx,
        intercept_ns: mean_y - xy / xx * mean_x,
        r_squared: if yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 },
    })
}

fn refused(points: &[SizingPoint], fit: Option<SizingFit>) -> Option<SizingRefusal> {
    match fit {
        Some(fit) if points.len() >= LEAST_POINTS => match fit {
            _ if fit.slope_ns <= 0.0 => Some(SizingRefusal::NotRising),
            _ if fit.r_squared < LEAST_R_SQUARED => Some(SizingRefusal::NotLinear),
            _ => None,
        },
        _ => Some(SizingRefusal::FewPoints),
    }
}
