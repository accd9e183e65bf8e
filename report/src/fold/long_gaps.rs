//! The longest gaps of a device, while its idle time is counted by cause.

use crate::table::device_idle::IdleCause;
use crate::table::long_gap::LongGap;
use std::cmp::Reverse;

/// Gaps that a report has.
const SHOWN: usize = 10;

/// How long a device was idle for each cause, in their order.
pub(crate) type CauseTimes = [i64; IdleCause::ALL.len()];

/// The longest gaps of a device.
#[derive(Debug, Default)]
pub(crate) struct LongGaps {
    /// When the gap began that is open, and the causes up to then.
    open: Option<(i64, CauseTimes)>,
    longest: Vec<LongGap>,
}

impl LongGaps {
    pub(crate) fn begin(&mut self, ns: i64, causes: CauseTimes) {
        self.open = Some((ns, causes));
    }

    pub(crate) fn end(&mut self, device: usize, ns: i64, causes: &CauseTimes) {
        let Some((start_ns, before)) = self.open.take() else {
            return;
        };
        let dur_ns = ns.saturating_sub(start_ns);
        let is_full = self.longest.len() >= SHOWN;
        if is_full
            && self
                .longest
                .last()
                .is_some_and(|least| dur_ns <= least.dur_ns)
        {
            return;
        }
        let times = causes.iter().zip(before).map(|(now, before)| now - before);
        let most = IdleCause::ALL
            .into_iter()
            .zip(times)
            .max_by_key(|(_, ns)| *ns);
        if let Some((cause, cause_ns)) = most {
            self.longest.push(LongGap {
                process: device,
                start_ns,
                dur_ns,
                cause,
                cause_ns,
            });
            shorten(&mut self.longest);
        }
    }

    /// Those of all devices.
    pub(crate) fn of_all(devices: impl Iterator<Item = LongGaps>) -> Vec<LongGap> {
        let mut all = devices.flat_map(|gaps| gaps.longest).collect();
        shorten(&mut all);
        all
    }
}

/// Keeps the longest, in order.
fn shorten(gaps: &mut Vec<LongGap>) {
    gaps.sort_by_key(|gap| (Reverse(gap.dur_ns), gap.start_ns, gap.process));
    gaps.truncate(SHOWN);
}
