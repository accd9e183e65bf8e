//! One time axis: what to add to a recording's times to get the reference host's monotonic clock.
//!
//! Recordings of one boot share the clock but for the offset of their time namespace. Other boots and hosts are placed by the
//! wall clock of their best anchor, which is as good as their clocks were set; the report says so.

use crate::index::Index;
use crate::recording::Recording;
use sa_recorder::format::{Anchor, FragmentHeader};
use serde::Serialize;
use std::collections::BTreeMap;

/// Times beyond this are cut off: no offset may overflow a sum of times. Wall times of today are below it.
const LIMIT_NS: i64 = i64::MAX / 4;

/// How the times of one boot were placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Nanoseconds added to its monotonic clock.
    pub shift_ns: i64,
    /// `shared`: it is the reference; `wall_clock`: by its anchors; `none`: it has no anchor and was left where it is.
    pub method: &'static str,
    /// Uncertainty of the readings in ns, not of the clocks' setting.
    pub uncertainty_ns: u64,
}

type Boot = (String, String);

/// The shifts of all recordings.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    boots: BTreeMap<Boot, Placement>,
    /// Wall time at the zero of the reference, as far as an anchor tells.
    wall_ns: Option<i64>,
}

/// What the clocks need to know of a recording.
pub(crate) struct Reading<'a> {
    pub(crate) header: &'a FragmentHeader,
    pub(crate) anchor: Option<Anchor>,
}

impl Clocks {
    /// Places the boots of all recordings.
    pub(crate) fn of(recordings: &[Recording], indexes: &[Index]) -> Clocks {
        let reading = recordings
            .iter()
            .zip(indexes)
            .filter_map(|(recording, index)| {
                Some(Reading {
                    header: recording.clock_header()?,
                    anchor: index.anchor,
                })
            });
        let readings: Vec<Reading<'_>> = reading.collect();
        Clocks::new(&readings)
    }

    /// Places every boot; the reference is the main process's, else the first.
    pub(crate) fn new(readings: &[Reading<'_>]) -> Clocks {
        let mut walls: BTreeMap<Boot, Option<(i64, u64)>> = BTreeMap::new();
        for reading in readings {
            let wall = walls.entry(boot(reading.header)).or_default();
            let new = reading
                .anchor
                .map(|anchor| wall_clock(reading.header, &anchor));
            *wall = match (*wall, new) {
                (Some(old), Some(new)) if new.1 < old.1 => Some(new),
                (None, new) => new,
                (old, _) => old,
            };
        }
        let main = readings
            .iter()
            .find(|reading| reading.header.main)
            .or(readings.first());
        let Some(reference) = main.map(|reading| boot(reading.header)) else {
            return Clocks::default();
        };
        let at_reference = walls.get(&reference).copied().flatten();
        let boots = walls.into_iter().map(|(boot, wall)| {
            let placement = place(&boot, wall, at_reference, boot == reference);
            (boot, placement)
        });
        Clocks {
            boots: boots.collect(),
            wall_ns: at_reference.map(|(wall_ns, _)| wall_ns),
        }
    }

    /// What to add to the times of a recording with this header.
    pub(crate) fn shift_ns(&self, header: Option<&FragmentHeader>) -> i64 {
        let Some(header) = header else { return 0 };
        let placed = self
            .boots
            .get(&boot(header))
            .map_or(0, |placement| placement.shift_ns);
        clamp(placed.saturating_sub(clamp(header.monotonic_offset_ns)))
    }

    /// What to add to the times of the axis to get wall time, if any anchor of the reference tells.
    pub(crate) fn wall_ns(&self) -> Option<i64> {
        self.wall_ns
    }

    pub(crate) fn placements(&self) -> Vec<Placement> {
        self.boots.values().cloned().collect()
    }
}

fn boot(header: &FragmentHeader) -> Boot {
    (header.host.clone(), header.boot_id.clone())
}

fn clamp(ns: i64) -> i64 {
    ns.clamp(-LIMIT_NS, LIMIT_NS)
}

/// Wall time at the host's monotonic zero, and its uncertainty.
pub(crate) fn wall_clock(header: &FragmentHeader, anchor: &Anchor) -> (i64, u64) {
    let time = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let monotonic = time(anchor.monotonic_ns).saturating_sub(header.monotonic_offset_ns);
    (
        time(anchor.realtime_ns).saturating_sub(monotonic),
        anchor.uncertainty_ns,
    )
}

fn place(
    boot: &Boot,
    wall: Option<(i64, u64)>,
    reference: Option<(i64, u64)>,
    is_reference: bool,
) -> Placement {
    let (shift_ns, method, uncertainty_ns) = match (wall, reference) {
        _ if is_reference => (0, "shared", 0),
        (Some(wall), Some(reference)) => (
            clamp(wall.0.saturating_sub(reference.0)),
            "wall_clock",
            wall.1.saturating_add(reference.1),
        ),
        _ => (0, "none", 0),
    };
    Placement {
        host: boot.0.clone(),
        boot_id: boot.1.clone(),
        shift_ns,
        method,
        uncertainty_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::header;

    fn anchor(monotonic_ns: u64, realtime_ns: u64) -> Option<Anchor> {
        Some(Anchor {
            monotonic_ns,
            realtime_ns,
            uncertainty_ns: 40,
        })
    }

    #[test]
    fn a_time_namespace_is_taken_off() {
        let inside = FragmentHeader {
            monotonic_offset_ns: 5_000,
            ..header(2)
        };
        let readings = [
            Reading {
                header: &header(1),
                anchor: None,
            },
            Reading {
                header: &inside,
                anchor: None,
            },
        ];
        let clocks = Clocks::new(&readings);
        assert_eq!(
            (
                clocks.shift_ns(Some(&header(1))),
                clocks.shift_ns(Some(&inside))
            ),
            (0, -5_000)
        );
    }

    #[test]
    fn another_host_is_placed_by_wall_time() {
        let main = FragmentHeader {
            main: true,
            ..header(1)
        };
        let other = FragmentHeader {
            host: "far".into(),
            boot_id: "b".into(),
            ..header(2)
        };
        let readings = [
            Reading {
                header: &other,
                anchor: anchor(10, 1_000_010),
            },
            Reading {
                header: &main,
                anchor: anchor(500, 900_500),
            },
        ];
        let clocks = Clocks::new(&readings);
        assert_eq!(
            (clocks.shift_ns(Some(&main)), clocks.shift_ns(Some(&other))),
            (0, 100_000)
        );
        assert_eq!(clocks.placements()[0].method, "wall_clock");
    }
}
