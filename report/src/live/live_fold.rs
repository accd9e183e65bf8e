//! What events say, folded into figures.

use super::last_seconds::LastSeconds;
use super::live_names::{LiveNames, NameSum};
use super::live_requests::LiveRequests;
use crate::fold::load_levels::Batchings;
use crate::gather::chunk_facts::ChunkFacts;
use crate::gather::device_slice::DeviceSlice;
use crate::gather::edge::{Edge, EdgeKind};
use std::collections::BTreeMap;
use std::time::Instant;
use trace_merge::blocks::Positions;

/// What an engine's counters said last, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    pub(super) running: Option<(i64, u32)>,
    pub(super) waiting: Option<(i64, u32)>,
    /// In thousandths.
    pub(super) kv_used: Option<(i64, u32)>,
}

impl Levels {
    /// Returns the later level of each kind.
    pub(super) fn later(self, next: &Levels) -> Levels {
        Levels {
            running: self.running.max(next.running),
            waiting: self.waiting.max(next.waiting),
            kv_used: self.kv_used.max(next.kv_used),
        }
    }
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
        self.devices
            .take(&facts.on_devices, self.requests.seconds());
        for step in facts.step_tokens {
            if let Some(second) = self.requests.seconds().at(step.ts_ns) {
                second.prefill_tokens += step.prefill;
                second.decode_tokens += step.decode;
            }
            self.requests.past().take_tokens(step.ts_ns, step.decode);
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
        let past = self.requests.past().levels(edge.of, edge.ns);
        let now = Some(self.levels.entry(edge.of).or_default());
        for known in now.into_iter().chain(past).map(of) {
            if known.is_none_or(|(ns, _)| ns <= edge.ns) {
                *known = Some((edge.ns, edge.value));
            }
        }
    }
}

/// Maximum number of separate busy times that are kept for a device. Streams are written one after the other, so a slice can come late and fill an earlier gap.
/// Time before the ones that are kept counts as known already.
const STRETCHES: usize = 4_096;

/// The busy time of a device so far.
#[derive(Debug, Default)]
pub(super) struct BusyTime {
    known: Positions,
    pub(super) slices: u64,
    pub(super) busy_ns: i64,
    pub(super) first_ns: Option<i64>,
    pub(super) last_ns: i64,
}

/// All devices, by the numbers of their processes.
#[derive(Debug, Default)]
pub(super) struct LiveDevices {
    pub(super) of: BTreeMap<u32, BusyTime>,
}

impl LiveDevices {
    /// Takes some slices.
    pub(super) fn take(&mut self, slices: &[DeviceSlice], seconds: &mut LastSeconds) {
        for slice in slices {
            let device = self.of.entry(slice.device).or_default();
            let (start_ns, end_ns) = (slice.start_ns.max(0), slice.end_ns.0.max(0));
            device.slices += 1;
            let first_ns = device.first_ns.get_or_insert(start_ns);
            *first_ns = start_ns.min(*first_ns);
            device.last_ns = device.last_ns.max(end_ns);
            let time = start_ns.unsigned_abs()..end_ns.unsigned_abs();
            for part in device.known.add(time) {
                let (from_ns, to_ns) = (part.start.cast_signed(), part.end.cast_signed());
                device.busy_ns += to_ns - from_ns;
                seconds.add_busy(slice.device, from_ns, to_ns);
            }
        }
        for device in self.of.values_mut() {
            device.known.forget_oldest(STRETCHES);
        }
    }
}
