//! Finds the times in which a process recorded nothing.

use std::collections::HashMap;

/// Number of equal parts of a run. A silence inside one part is not found.
const PARTS: i64 = 1_024;

/// Equal parts of a run's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunParts {
    from_ns: i64,
    part_ns: i64,
}

impl RunParts {
    /// Divides the time of a run, from its start to its end in ns, into equal parts.
    pub(crate) fn new(from_ns: i64, to_ns: i64) -> RunParts {
        let wall_ns = to_ns.saturating_sub(from_ns);
        let part_ns = (wall_ns / PARTS).max(1);
        RunParts { from_ns, part_ns }
    }
}

/// First and last event of a process in one part of the run.
#[derive(Clone, Copy, Debug)]
struct Ends {
    process: u32,
    part: i64,
    first_ns: i64,
    last_ns: i64,
}

/// First and last event of each process in each part of the run.
#[derive(Debug, Default)]
pub(crate) struct EventTimes {
    /// Entry of the last event. The next event often belongs to the same entry.
    current: Option<Ends>,
    ends: HashMap<(u32, i64), (i64, i64)>,
}

/// A time between two events of a process in which it recorded nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    pub(crate) process: u32,
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
}

impl EventTimes {
    /// Records that a process had an event at `ns`.
    pub(crate) fn add(&mut self, parts: RunParts, process: u32, ns: i64) {
        let part = ns.saturating_sub(parts.from_ns) / parts.part_ns;
        match &mut self.current {
            Some(ends) if (ends.process, ends.part) == (process, part) => {
                ends.first_ns = ends.first_ns.min(ns);
                ends.last_ns = ends.last_ns.max(ns);
            }
            current => {
                let new = Ends {
                    process,
                    part,
                    first_ns: ns,
                    last_ns: ns,
                };
                if let Some(ends) = current.replace(new) {
                    self.extend((ends.process, ends.part), (ends.first_ns, ends.last_ns));
                }
            }
        }
    }

    /// Records the first and the last event of a process in one part of the run. `key` contains the process and the
    /// part.
    fn extend(&mut self, key: (u32, i64), (first_ns, last_ns): (i64, i64)) {
        let times = self.ends.entry(key).or_insert((first_ns, last_ns));
        *times = (times.0.min(first_ns), times.1.max(last_ns));
    }

    /// Adds the event times of another chunk.
    pub(crate) fn merge(&mut self, other: EventTimes) {
        let ends = |ends: Ends| ((ends.process, ends.part), (ends.first_ns, ends.last_ns));
        let others = other.ends.into_iter().chain(other.current.map(ends));
        others.for_each(|(key, times)| self.extend(key, times));
    }

    /// Returns the times of at least `least_ns` in which a process recorded no event, ordered by process and time.
    /// Times inside one part of the run are not found.
    pub(crate) fn silences(self, least_ns: i64) -> Vec<Silence> {
        let mut ends: Vec<((u32, i64), (i64, i64))> = self.ends.into_iter().collect();
        ends.sort_unstable();
        let silences = ends.windows(2).filter_map(|two| {
            let [((process, _), (_, from_ns)), ((next, _), (to_ns, _))] = *two else {
                return None;
            };
            let is_long = process == next && to_ns.saturating_sub(from_ns) >= least_ns;
            is_long.then_some(Silence {
                process,
                from_ns,
                to_ns,
            })
        });
        silences.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_have_exact_ends_whatever_the_order_of_events() {
        let parts = RunParts::new(0, 1_024_000);
        let mut times = EventTimes::default();
        for (process, ns) in [(1, 10), (1, 900_123), (1, 20), (2, 500_000)] {
            let mut chunk = EventTimes::default();
            chunk.add(parts, process, ns);
            times.merge(chunk);
        }
        let mut chunk = EventTimes::default();
        for (process, ns) in [(1, 200_456), (1, 200_400), (2, 500_001), (1, 1_000_000)] {
            chunk.add(parts, process, ns);
        }
        times.merge(chunk);
        let silence = |from_ns, to_ns| Silence {
            process: 1,
            from_ns,
            to_ns,
        };
        let expected = [silence(20, 200_400), silence(200_456, 900_123)];
        assert_eq!(times.silences(100_000), expected);
    }
}
