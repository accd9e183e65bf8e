//! Finds the worker that launches work on each device, and the engine that schedules for that worker.

use crate::gather::process_ids::ProcessIds;
use std::collections::BTreeSet;

/// The processes that feed a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Feed {
    pub(super) device: usize,
    pub(super) worker: usize,
    pub(super) engine: Option<usize>,
    /// Other workers of the engine that run the same steps. Replicas scheduled by the same process have other requests,
    /// so they are not among them.
    pub(super) others: Vec<usize>,
}

/// Returns the feed of each device. `recorders` are pairs of a device and the process that recorded it. `engines` are
/// the processes that schedule or forward requests, `workers` the ones that run steps.
pub(super) fn feeds(
    recorders: &[(usize, usize)],
    engines: &BTreeSet<usize>,
    workers: &BTreeSet<usize>,
    ids: &ProcessIds,
) -> Vec<Feed> {
    let engine_of = |worker: usize| {
        if engines.contains(&worker) {
            return Some(worker);
        }
        match engines.len() {
            1 => engines.first().copied(),
            _ => engines
                .iter()
                .map(|engine| (ids.shared(worker, *engine), *engine))
                .filter(|(shared, _)| *shared > 0)
                .max_by_key(|(shared, engine)| (*shared, std::cmp::Reverse(*engine)))
                .map(|(_, engine)| engine),
        }
    };
    let feed = |&(device, worker): &(usize, usize)| {
        let engine = engine_of(worker);
        let is_other = |other: &usize| {
            let is_of_engine = engine.is_some() && engine_of(*other) == engine;
            *other != worker && is_of_engine && !ids.are_apart(worker, *other)
        };
        Feed {
            device,
            worker,
            engine,
            others: workers.iter().copied().filter(is_other).collect(),
        }
    };
    recorders.iter().map(feed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process 0 schedules two replicas.
    #[test]
    fn replicas_do_not_wait_for_each_other() {
        let mut ids = ProcessIds::default();
        for (process, request) in [(0, 7), (0, 8), (2, 7), (3, 8), (4, 8)] {
            ids.add(process, request);
        }
        let (engines, workers) = (BTreeSet::from([0]), BTreeSet::from([2, 3, 4, 5]));
        let found = feeds(&[(10, 2), (11, 3), (12, 5)], &engines, &workers, &ids);
        let others: Vec<Vec<usize>> = found.into_iter().map(|feed| feed.others).collect();
        // Nothing is known about the requests of worker 5, so it may share steps with any worker.
        assert_eq!(others, [vec![5], vec![4, 5], vec![2, 3, 4]]);
    }
}
