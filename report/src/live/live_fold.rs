//! Folds the records of events into figures.

use super::last_seconds::LastSeconds;
use super::live_names::{LiveNames, NameSum};
use super::live_requests::LiveRequests;
use crate::fold::load_levels::Batchings;
use crate::gather::chunk_records::ChunkRecords;
use crate::gather::device_slice::DeviceSlice;
use crate::gather::edge::{Edge, EdgeKind};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use trace_merge::blocks::Positions;

/// Last values of an engine's counters, each with its time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    pub(super) running: Option<(i64, u32)>,
    pub(super) waiting: Option<(i64, u32)>,
    /// KV cache use, in thousandths.
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
    /// Levels by process number.
    pub(super) levels: BTreeMap<u32, Levels>,
    pub(super) newest_ns: Option<i64>,
    /// Number of events with a time outside of the run.
    pub(super) out_of_time: u64,
}

impl LiveFold {
    /// Adds the records of some events. The last of them ended at `newest_ns`.
    pub(super) fn add_records(&mut self, mut records: ChunkRecords, newest_ns: i64, now: Instant) {
        self.newest_ns = self.newest_ns.max(Some(newest_ns));
        self.requests.seconds().advance_to(newest_ns);
        self.requests.add_records(&mut records, now);
        let keys = records.keys.into_keys();
        let mut sums = vec![NameSum::default(); keys.len()];
        for slice in &records.slices {
            sums[slice.key as usize].add_slice(slice.end_ns.0 - slice.start_ns);
        }
        for (key, sum) in keys.into_iter().zip(sums) {
            self.names.add(key, sum);
        }
        self.devices
            .stepping
            .extend(records.steps.iter().map(|step| step.process));
        self.devices
            .add_slices(&records.on_devices, self.requests.seconds());
        for step in records.step_tokens {
            if let Some(second) = self.requests.seconds().second_at(step.ts_ns) {
                second.prefill_tokens += step.prefill;
                second.decode_tokens += step.decode;
            }
            self.requests.past().add_tokens(step.ts_ns, step.decode);
            self.batchings.add_step(step);
        }
        for speculation in records.speculations {
            self.batchings.add_speculation(speculation);
        }
        records.edges.iter().for_each(|edge| self.set_level(edge));
    }

    fn set_level(&mut self, edge: &Edge) {
        let level: fn(&mut Levels) -> &mut Option<(i64, u32)> = match edge.kind {
            EdgeKind::Running => |levels| &mut levels.running,
            EdgeKind::Waiting => |levels| &mut levels.waiting,
            EdgeKind::KvUsed => |levels| &mut levels.kv_used,
            _ => return,
        };
        let past = self.requests.past().levels(edge.process, edge.ns);
        let now = Some(self.levels.entry(edge.process).or_default());
        for last in now.into_iter().chain(past).map(level) {
            if last.is_none_or(|(ns, _)| ns <= edge.ns) {
                *last = Some((edge.ns, edge.value));
            }
        }
    }
}

/// Maximum number of separate busy intervals that are kept per device. Streams are written one after the other, so a
/// slice may come late and fill an earlier gap. All time before the kept intervals counts as already covered.
const MOST_INTERVALS: usize = 4_096;

/// Busy time of a device so far.
#[derive(Debug, Default)]
pub(super) struct BusyTime {
    covered: Positions,
    pub(super) slices: u64,
    pub(super) busy_ns: i64,
    pub(super) first_ns: Option<i64>,
    pub(super) last_ns: i64,
}

/// All devices by process number.
#[derive(Debug, Default)]
pub(super) struct LiveDevices {
    pub(super) times: BTreeMap<u32, BusyTime>,
    /// Processes that have run steps. Parts of steps in other processes are no slices.
    pub(super) stepping: BTreeSet<u32>,
}

impl LiveDevices {
    /// Adds slices that ran on devices to the devices' busy time, in total and in `seconds`. Time in which slices
    /// overlap counts once.
    pub(super) fn add_slices(&mut self, slices: &[DeviceSlice], seconds: &mut LastSeconds) {
        for slice in slices {
            if slice.is_part && !self.stepping.contains(&slice.device) {
                continue;
            }
            let device = self.times.entry(slice.device).or_default();
            let (start_ns, end_ns) = (slice.start_ns.max(0), slice.end_ns.0.max(0));
            device.slices += u64::from(!slice.is_part);
            let first_ns = device.first_ns.get_or_insert(start_ns);
            *first_ns = start_ns.min(*first_ns);
            device.last_ns = device.last_ns.max(end_ns);
            let time = start_ns.unsigned_abs()..end_ns.unsigned_abs();
            for part in device.covered.add(time) {
                let (from_ns, to_ns) = (part.start.cast_signed(), part.end.cast_signed());
                device.busy_ns += to_ns - from_ns;
                seconds.add_busy(slice.device, from_ns, to_ns);
            }
        }
        for device in self.times.values_mut() {
            device.covered.fill_oldest(MOST_INTERVALS);
        }
    }
}
