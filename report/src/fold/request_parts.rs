//! Requests → where their time goes.

use crate::table::{PARTS, Request, RequestPart, RequestParts};

/// Where the time of answered requests goes.
pub(crate) fn request_parts(requests: &[Request]) -> RequestParts {
    let answered = requests.iter().filter(|request| request.is_ok());
    let mut known: Vec<(i64, &Request)> = answered
        .filter_map(|request| Some((request.e2e_ns()?, request)))
        .collect();
    known.sort_unstable_by(|one, other| {
        (one.0, one.1.request_id()).cmp(&(other.0, other.1.request_id()))
    });
    let Some((slowest_ns, slowest)) = known.last() else {
        return RequestParts::default();
    };
    let nth = (known.len() * 99).div_ceil(100).max(1) - 1;
    let (p99_ns, p99) = known[nth];
    let of = |request: &Request, name: &str| {
        let mut parts = request.parts().unwrap_or_default().into_iter();
        let part = parts.find(|(of, _)| of == name);
        part.map_or(0, |(_, ns)| ns)
    };
    let mut sums: Vec<(String, i128)> = Vec::new();
    let parts = known.iter().filter_map(|(_, request)| request.parts());
    for (name, ns) in parts.flatten() {
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += i128::from(ns),
            None => sums.push((name, i128::from(ns))),
        }
    }
    sums.sort_by_key(|(name, _)| {
        let first = name.split(" + ").next().unwrap_or_default();
        (PARTS.iter().position(|part| *part == first), name.len())
    });
    let n = known.len() as f64;
    let part = |(name, sum): (String, i128)| RequestPart {
        mean_ns: sum as f64 / n,
        p99_ns: of(p99, &name),
        slowest_ns: of(slowest, &name),
        name,
    };
    let whole: i128 = known.iter().map(|(e2e_ns, _)| i128::from(*e2e_ns)).sum();
    RequestParts {
        n: known.len() as u64,
        parts: sums.into_iter().map(part).collect(),
        e2e_mean_ns: whole as f64 / n,
        e2e_p99_ns: p99_ns,
        e2e_slowest_ns: *slowest_ns,
        p99_id: p99.request_id().to_owned(),
        slowest_id: slowest.request_id().to_owned(),
    }
}
