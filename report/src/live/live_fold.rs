//! What events say, folded into figures.

use super::live_devices::LiveDevices;
use super::live_names::{LiveNames, NameSum};
use super::live_requests::LiveRequests;
use crate::fold::batchings::Batchings;
use crate::gather::chunk_facts::ChunkFacts;
use crate::gather::edge::{Edge, EdgeKind};
use std::collections::BTreeMap;
use std::time::Instant;

/// What an engine's counters said last, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    pub(super) running: Option<(i64, u32)>,
    pub(super) waiting: Option<(i64, u32)>,
    /// In thousandths.
    pub(super) kv_used: Option<(i64, u32)>,
}

/// The figures so far.
#[derive(Debug, Default)]
pub(super) struct LiveFold {
    pub(super) names: LiveNames,
    pub(super) devices: LiveDevices,
    pub(super) requests: LiveRequests,
    pub(super) batchings: Batchings,
    /// By process.
    pub(super) levels: BTreeMap<u32, Levels>,
    pub(super) newest_ns: Option<i64>,
    /// Events with a time that is none of the run.
    pub(super) out_of_time: u64,
}

impl LiveFold {
    /// Takes what some events say, of which the last ended at `newest_ns`.
    pub(super) fn take(&mut self, mut facts: ChunkFacts, newest_ns: i64, now: Instant) {
        self.newest_ns = self.newest_ns.max(Some(newest_ns));
        self.requests.seconds().reach(newest_ns);
        self.requests.take(&mut facts, now);
        let keys = facts.keys.into_keys();
        let mut sums = vec![NameSum::default(); keys.len()];
        for slice in &facts.slices {
            sums[slice.key as usize].take(slice.end_ns.0 - slice.start_ns);
        }
        for (key, sum) in keys.into_iter().zip(sums) {
            self.names.add(key, sum);
        }
        let seconds = self.requests.seconds();
        self.devices.take(&facts.on_devices, seconds);
        for step in facts.step_tokens {
            if let Some(second) = seconds.at(step.ts_ns) {
                second.prefill_tokens += step.prefill;
                second.decode_tokens += step.decode;
            }
            self.batchings.take(step);
        }
        for speculation in facts.speculations {
            self.batchings.speculated(speculation);
        }
        facts.edges.iter().for_each(|edge| self.level(edge));
    }

    fn level(&mut self, edge: &Edge) {
        let of: fn(&mut Levels) -> &mut Option<(i64, u32)> = match edge.kind {
            EdgeKind::Running => |levels| &mut levels.running,
            EdgeKind::Waiting => |levels| &mut levels.waiting,
            EdgeKind::KvUsed => |levels| &mut levels.kv_used,
            _ => return,
        };
        let known = of(self.levels.entry(edge.of).or_default());
        if known.is_none_or(|(ns, _)| ns <= edge.ns) {
            *known = Some((edge.ns, edge.value));
        }
    }
}
