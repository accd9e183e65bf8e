//! The longest gaps of a device, while its idle time is counted by cause.

use crate::table::device_idle::IdleCause;
use crate::table::device_idle::LongGap;
use std::cmp::Reverse;

/// Gaps that a report has.
const SHOWN: usize = 10;

/// How long a device was idle for each cause, in their order.
pub(crate) type CauseTimes = [i64; IdleCause::ALL.len()];

/// A gap, with its causes.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start_ns: i64,
    dur_ns: i64,
    causes: CauseTimes,
    /// Time in a step behind a launch, whose cause is known when the next launch or the end of the step comes.
    behind_launch_ns: i64,
}

/// The longest gaps of a device.
#[derive(Debug, Default)]
pub(crate) struct LongGaps {
    open: Option<Gap>,
    /// Those that are over, with time whose cause is not known yet.
    unsettled: Vec<Gap>,
    longest: Vec<LongGap>,
}

impl LongGaps {
    pub(crate) fn begin(&mut self, start_ns: i64) {
        self.open = Some(Gap {
            start_ns,
            dur_ns: 0,
            causes: [0; IdleCause::ALL.len()],
            behind_launch_ns: 0,
        });
    }

    /// Counts idle time for a cause; `None` behind a launch.
    pub(crate) fn count(&mut self, cause: Option<IdleCause>, ns: i64) {
        if let Some(open) = &mut self.open {
            match cause {
                Some(cause) => open.causes[cause as usize] += ns,
                None => open.behind_launch_ns += ns,
            }
        }
    }

    /// What the time behind the last launch was.
    pub(crate) fn settle(&mut self, device: usize, cause: IdleCause) {
        let settle = |gap: &mut Gap| {
            gap.causes[cause as usize] += std::mem::take(&mut gap.behind_launch_ns);
        };
        self.open.iter_mut().for_each(settle);
        for mut gap in std::mem::take(&mut self.unsettled) {
            settle(&mut gap);
            self.add(device, &gap);
        }
    }

    pub(crate) fn end(&mut self, device: usize, end_ns: i64) {
        let Some(gap) = self.open.take() else {
            return;
        };
        let dur_ns = end_ns.saturating_sub(gap.start_ns);
        let gap = Gap { dur_ns, ..gap };
        match gap.behind_launch_ns {
            0 => self.add(device, &gap),
            _ if self.is_long(&gap) => self.wait(gap),
            _ => {}
        }
    }

    /// Keeps a gap until its cause is known. All that wait get the same one, so the longest of them are enough.
    fn wait(&mut self, gap: Gap) {
        self.unsettled.push(gap);
        if self.unsettled.len() >= 2 * SHOWN {
            self.unsettled.sort_by_key(|gap| Reverse(gap.dur_ns));
            self.unsettled.truncate(SHOWN);
        }
    }

    /// Returns true if it is one of the longest so far. Of two that are as long, the earlier one counts.
    fn is_long(&self, gap: &Gap) -> bool {
        let least = self.longest.last().filter(|_| self.longest.len() >= SHOWN);
        least.is_none_or(|least| {
            (gap.dur_ns, Reverse(gap.start_ns)) > (least.dur_ns, Reverse(least.start_ns))
        })
    }

    fn add(&mut self, device: usize, gap: &Gap) {
        let times = IdleCause::ALL.into_iter().zip(gap.causes);
        let most = times.max_by_key(|(cause, ns)| (*ns, Reverse(cause.name())));
        if let Some((cause, cause_ns)) = most.filter(|_| self.is_long(gap)) {
            self.longest.push(LongGap {
                process: device,
                start_ns: gap.start_ns,
                dur_ns: gap.dur_ns,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two gaps behind the launches of a step, of which one ends before the next launch and one lies across the end of the step.
    #[test]
    fn time_behind_a_launch_has_the_cause_that_follows() {
        let mut gaps = LongGaps::default();
        gaps.begin(0);
        gaps.count(None, 9);
        gaps.end(3, 9);
        gaps.begin(10);
        gaps.count(None, 2);
        gaps.settle(3, IdleCause::Sampling);
        gaps.count(Some(IdleCause::Ipc), 1);
        gaps.end(3, 13);
        gaps.begin(20);
        gaps.count(None, 5);
        gaps.settle(3, IdleCause::LaunchGap);
        gaps.end(3, 25);
        let found: Vec<_> = LongGaps::of_all(std::iter::once(gaps))
            .into_iter()
            .map(|gap| (gap.dur_ns, gap.cause, gap.cause_ns))
            .collect();
        assert_eq!(
            found,
            [
                (9, IdleCause::Sampling, 9),
                (5, IdleCause::LaunchGap, 5),
                (3, IdleCause::Sampling, 2)
            ]
        );
    }

    /// A step that never ends, with a million gaps behind one launch.
    #[test]
    fn few_gaps_wait_for_their_cause() {
        let mut gaps = LongGaps::default();
        for ns in 0..1_000_000 {
            gaps.begin(0);
            gaps.count(None, ns);
            gaps.end(3, ns);
        }
        assert!(gaps.unsettled.len() < 2 * SHOWN);
        gaps.settle(3, IdleCause::LaunchGap);
        let found = LongGaps::of_all(std::iter::once(gaps));
        assert_eq!(
            (found.len(), found[0].dur_ns, found[9].dur_ns),
            (SHOWN, 999_999, 999_990)
        );
    }
}
