//! Relates the times of several hosts while their recordings grow, by their first readings of both clocks.

use crate::align::clamp;
use crate::fragment::liveness::{Boot, boot, boot_id_here, monotonic_here, wall_clock};
use sa_format::{Anchor, FragmentHeader};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Assumed difference between the wall clocks of two hosts. It cannot be measured here; NTP keeps them within some ms.
const WALL_ERROR_NS: u64 = 10_000_000;

/// Offset of a boot's times on the common axis, which is the monotonic clock of the boot that was found first. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BootOffset {
    shift_ns: i64,
    pub(super) uncertainty_ns: u64,
}

/// All boots with a known reading.
#[derive(Debug, Default)]
pub(super) struct BootClocks {
    /// Wall clock of the first boot at the zero of its monotonic clock, and the uncertainty of that reading.
    reference: Option<(i64, u64)>,
    offsets: BTreeMap<Boot, BootOffset>,
}

impl BootClocks {
    /// Adds a reading of both clocks (an anchor) from the recording with this header. The first reading of a boot determines its offset; later
    /// ones are ignored.
    pub(super) fn add(&mut self, header: &FragmentHeader, anchor: &Anchor) {
        let boot = boot(header);
        if self.offsets.contains_key(&boot) {
            return;
        }
        let wall_ns = wall_clock(header, anchor);
        let offset = match self.reference {
            None => BootOffset {
                shift_ns: 0,
                uncertainty_ns: 0,
            },
            Some((reference_ns, read_in_ns)) => BootOffset {
                shift_ns: clamp(wall_ns.saturating_sub(reference_ns)),
                uncertainty_ns: WALL_ERROR_NS
                    .saturating_add(read_in_ns)
                    .saturating_add(anchor.uncertainty_ns),
            },
        };
        let read_in_ns = anchor.uncertainty_ns;
        self.reference.get_or_insert((wall_ns, read_in_ns));
        self.offsets.insert(boot, offset);
    }

    /// Returns the clock offset of the boot in which the recording with this header was made. Returns `None` before the boot's first reading of
    /// both clocks.
    pub(super) fn offset(&self, header: &FragmentHeader) -> Option<&BootOffset> {
        self.offsets.get(&boot(header))
    }

    /// Returns the number of ns to add to the recorded times of a recording with this header to get times on the common axis.
    pub(super) fn shift_ns(&self, header: &FragmentHeader) -> i64 {
        let boot_ns = self.offset(header).map_or(0, |offset| offset.shift_ns);
        clamp(boot_ns.saturating_sub(clamp(header.monotonic_offset_ns)))
    }

    /// Returns the current time on the common axis, in ns; `None` before the first reading. It uses the monotonic clock if this boot has an
    /// offset, otherwise the wall clocks of both hosts.
    pub(super) fn now_ns(&self) -> Option<i64> {
        let reference = self.wall_ns()?;
        let boot_id = boot_id_here();
        let mut offsets = self.offsets.iter();
        let own = offsets.find(|((_, id), _)| *id == boot_id);
        if let Some((monotonic_ns, (_, offset))) = monotonic_here().zip(own) {
            return Some(monotonic_ns.saturating_add(offset.shift_ns));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let now_ns = i64::try_from(since.as_nanos()).ok()?;
        Some(now_ns.saturating_sub(reference))
    }

    /// Returns the wall time at the zero of the common axis, in ns since 1970; `None` before the first reading.
    pub(super) fn wall_ns(&self) -> Option<i64> {
        self.reference.map(|(wall_ns, _)| wall_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::{anchor, header};

    #[test]
    fn another_host_is_placed_by_its_wall_clock() {
        let here = header(7);
        let there = FragmentHeader {
            host: "there".into(),
            boot_id: "other".into(),
            monotonic_offset_ns: 30,
            ..header(8)
        };
        let mut clocks = BootClocks::default();
        assert_eq!(clocks.shift_ns(&there), -30);
        clocks.add(&here, &anchor(1_000, 501_000));
        // On its host the monotonic clock is 170, and it showed this value 100 later.
        clocks.add(&there, &anchor(200, 501_100));
        assert_eq!(
            (clocks.shift_ns(&here), clocks.wall_ns()),
            (0, Some(500_000))
        );
        assert_eq!(200 + clocks.shift_ns(&there), 1_100);
        let uncertainty_ns = |header| clocks.offset(header).unwrap().uncertainty_ns;
        assert_eq!(
            (uncertainty_ns(&here), uncertainty_ns(&there)),
            (0, 10_000_080)
        );
        // This host's boot is neither of the two, so the wall clock determines the current time.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let late_ns = i64::try_from(since.as_nanos()).unwrap() - 500_000 - clocks.now_ns().unwrap();
        assert!((0..60_000_000_000).contains(&-late_ns), "{late_ns}");
        // A later reading changes nothing.
        clocks.add(&there, &anchor(300, 900_000));
        assert_eq!(200 + clocks.shift_ns(&there), 1_100);
    }
}
