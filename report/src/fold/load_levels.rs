//! Edges in the order of time → how much there was to do.

use crate::gather::edge::{Edge, EdgeKind};
use crate::table::{LoadLevel, SeriesKind};
use std::collections::BTreeMap;
use std::io;
use trace_store::sorter::Sorted;

/// How long a level was how high.
#[derive(Debug, Default)]
struct Level {
    /// Since when it is known, and up to when its time is counted.
    counted_ns: Option<i64>,
    now: u32,
    ns_at: BTreeMap<u32, i64>,
}

impl Level {
    fn set(&mut self, ns: i64, value: u32) {
        self.count(ns);
        self.now = value;
    }

    fn count(&mut self, ns: i64) {
        let counted_ns = self.counted_ns.replace(ns).unwrap_or(ns);
        if ns > counted_ns {
            *self.ns_at.entry(self.now).or_default() += ns - counted_ns;
        }
    }

    fn finish(self, of: SeriesKind, process: Option<usize>) -> Option<LoadLevel> {
        let wall_ns: i64 = self.ns_at.values().sum();
        let unit = match of {
            SeriesKind::KvUsedPercent => 0.1,
            _ => 1.0,
        };
        let at = |share: f64| {
            let mut below_ns = 0;
            let mut levels = self.ns_at.iter();
            let found = levels.find(|(_, ns)| {
                below_ns += **ns;
                below_ns as f64 >= share * wall_ns as f64
            });
            unit * f64::from(found.map_or(0, |(level, _)| *level))
        };
        let sum: f64 = self
            .ns_at
            .iter()
            .map(|(level, ns)| f64::from(*level) * *ns as f64)
            .sum();
        (wall_ns > 0).then(|| LoadLevel {
            of,
            process,
            wall_ns,
            mean: unit * sum / wall_ns as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        })
    }
}

/// The levels of requests, and of each engine. That of all requests ends with the last end of one at `last_ns`.
pub(crate) fn load_levels(edges: &Sorted<Edge>, last_ns: i64) -> io::Result<Vec<LoadLevel>> {
    let mut levels: BTreeMap<(SeriesKind, Option<usize>), Level> = BTreeMap::new();
    edges.each(|edge| {
        if let Some(of) = edge.kind.level() {
            let level = levels.entry((of, Some(edge.of as usize))).or_default();
            level.set(edge.ns, edge.value);
        }
        match edge.kind {
            EdgeKind::RequestBegin | EdgeKind::RequestEnd => {
                let level = levels.entry((SeriesKind::UnderWay, None)).or_default();
                let now = match edge.kind {
                    EdgeKind::RequestBegin => level.now.saturating_add(1),
                    _ => level.now.saturating_sub(1),
                };
                level.set(edge.ns.min(last_ns), now);
            }
            _ => {}
        }
        Ok(())
    })?;
    let levels = levels.into_iter();
    Ok(levels
        .filter_map(|((of, process), level)| level.finish(of, process))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_weighted_by_time() {
        let edge = |ns, kind, value| Edge {
            ns,
            kind,
            of: 3,
            value,
        };
        let edges = vec![
            edge(0, EdgeKind::RequestBegin, 0),
            edge(10, EdgeKind::RequestBegin, 0),
            edge(10, EdgeKind::KvUsed, 250),
            edge(30, EdgeKind::RequestEnd, 0),
            edge(50, EdgeKind::KvUsed, 0),
            edge(i64::MAX, EdgeKind::RequestEnd, 0),
        ];
        let levels = load_levels(&Sorted::Memory(edges), 100).unwrap();
        let [requests, kv] = levels.as_slice() else {
            panic!("{levels:?}")
        };
        // One from 0 to 10 and from 30 to 100, two between.
        assert_eq!(
            (requests.wall_ns, requests.max, requests.p50),
            (100, 2.0, 1.0)
        );
        assert!((requests.mean - 1.2).abs() < 1e-9);
        assert_eq!((kv.process, kv.wall_ns), (Some(3), 40));
        assert!((kv.mean - 25.0).abs() < 1e-9 && (kv.max - 25.0).abs() < 1e-9);
    }
}
