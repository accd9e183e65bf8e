//! The clocks of all boots: selects the reference and aligns the others with it.

use crate::ClockOptions;
use crate::align::{
    Alignment, Curve, End, Host, Hosts, Reading, Role, Wall, clamp, drop_disordered, drop_odd,
    remove_lone_readings, thin,
};
use crate::clock::collective_ends::CollectiveSearch;
use crate::clock::placement::Placement;
use crate::clock::time_map::TimeMap;
use crate::event::flow;
use crate::event::line::Event;
use crate::fragment::liveness::{Boot, boot};
use crate::fragment::recording::Recording;
use crate::pass::labels::Labels;
use crate::pass::parallel::{BatchSize, ChunkView, map_chunks};
use crate::store::sorter::{Sorted, Sorter};
use crate::summary::chunk_summary::ChunkSummary;
use sa_format::{Anchor, FragmentHeader, Phase};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Default error of a wall clock. NTP keeps it within some ms over the Internet, and within less on
/// a local network.
const WALL_ERROR: Duration = Duration::from_millis(10);

/// Evidence by which the clocks of several hosts are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockBy {
    /// Wall clocks, flows between hosts (nothing arrives before it was sent), and collectives that
    /// they ended together.
    #[default]
    Flows,
    /// Wall clocks only.
    Anchors,
    /// None: the times of each boot stay as recorded.
    None,
}

/// Maps the times of all recordings to the axis.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    boots: BTreeMap<Boot, (Placement, Curve)>,
    /// Curve from the axis to wall time. `None` without anchors.
    wall: Option<Curve>,
    /// Error that prevented the use of flows.
    pub(crate) flow_error: Option<String>,
}

/// Maximum memory in bytes for the ends of flows and collectives.
const MAX_END_BYTES: usize = 8 << 20;

/// Evidence about clocks in addition to anchors: flows and collectives.
pub(crate) struct ClockEvidence<'a> {
    pub(crate) recordings: &'a [Recording],
    pub(crate) summaries: &'a [ChunkSummary],
    pub(crate) view: ChunkView<'a>,
    /// Folders for temporary files.
    pub(crate) folders: &'a [PathBuf],
}

impl Clocks {
    /// Aligns the boots of all recordings by all available evidence.
    pub(crate) fn from_recordings(flows: &ClockEvidence<'_>, options: &ClockOptions) -> Clocks {
        let recordings = flows.recordings;
        let known = recordings.iter().zip(flows.summaries);
        let known = known.filter_map(|(recording, summary)| {
            Some(RecordedClock {
                header: recording.clock_header()?,
                anchors: &summary.anchors,
                events_ns: summary.range_ns(),
            })
        });
        let known: Vec<RecordedClock<'_>> = known.collect();
        Clocks::new(&known, options, Some(flows))
    }

    /// Aligns all boots. The reference is the boot of a main process, otherwise the first boot.
    /// Boots with a wall clock are preferred.
    pub(crate) fn new(
        known: &[RecordedClock<'_>],
        options: &ClockOptions,
        flows: Option<&ClockEvidence<'_>>,
    ) -> Clocks {
        let boots: BTreeSet<Boot> = known.iter().map(|known| boot(known.header)).collect();
        let boots: Vec<Boot> = boots.into_iter().collect();
        let list = hosts(&boots, known, flows.is_some());
        let knows = |known: &&RecordedClock<'_>| {
            let number = boots.binary_search(&boot(known.header));
            number.is_ok_and(|number| list[number].wall.is_some())
        };
        let main = || known.iter().filter(|known| known.header.main);
        let reference = main().find(knows).or_else(|| known.iter().find(knows));
        let reference = reference.or_else(|| main().next()).or(known.first());
        let number = reference.and_then(|known| boots.binary_search(&boot(known.header)).ok());
        let Some(number) = number else {
            return Clocks::default();
        };
        let wall_error = options.wall_error.unwrap_or(WALL_ERROR);
        let wall_error_ns = i64::try_from(wall_error.as_nanos()).map_or(i64::MAX, clamp);
        let hosts = Hosts::new(list, number, wall_error_ns);
        Clocks::align(&boots, &hosts, options.by, flows)
    }

    fn align(
        boots: &[Boot],
        hosts: &Hosts,
        by: ClockBy,
        flows: Option<&ClockEvidence<'_>>,
    ) -> Clocks {
        let mut flow_error = None;
        let places = match (by, flows) {
            (ClockBy::None, _) => vec![Alignment::default(); boots.len()],
            (ClockBy::Flows, Some(flows)) if boots.len() > 1 => {
                let ends = flows.collect_ends(boots, hosts);
                let places = ends.map(|ends| hosts.place_by_flows(&ends));
                places.unwrap_or_else(|error| {
                    flow_error = Some(error.to_string());
                    hosts.place()
                })
            }
            _ => hosts.place(),
        };
        let placed = |(number, place): (usize, Alignment)| {
            let (boot, is_reference) = (&boots[number], number == hosts.reference);
            let placement = Placement::new(boot, &hosts.list[number], &place, is_reference);
            (boot.clone(), (placement, place.curve))
        };
        let reference = hosts.list.get(hosts.reference);
        let wall = reference.and_then(|host| host.wall.as_ref());
        Clocks {
            boots: places.into_iter().enumerate().map(placed).collect(),
            wall: wall.map(|wall| wall.curve.clone()),
            flow_error,
        }
    }

    /// Returns the map for the times of a recording with this header.
    pub(crate) fn map(&self, header: Option<&FragmentHeader>) -> TimeMap {
        let Some(header) = header else {
            return TimeMap::default();
        };
        let offset_ns = clamp(header.monotonic_offset_ns);
        let Some((_, curve)) = self.boots.get(&boot(header)) else {
            return TimeMap::shift(clamp(offset_ns.saturating_neg()));
        };
        match curve.as_shift() {
            Some(shift_ns) => TimeMap::shift(clamp(shift_ns.saturating_sub(offset_ns))),
            None => TimeMap {
                warp: Some(Arc::new(curve.from_ahead(offset_ns))),
                shift_ns: 0,
            },
        }
    }

    /// Returns the map of each recording. Recordings of the same clock share a curve.
    pub(crate) fn maps(&self, recordings: &[Recording]) -> Vec<TimeMap> {
        let mut made = BTreeMap::new();
        let headers = recordings.iter().map(Recording::clock_header);
        let mut map = |header: Option<&FragmentHeader>| {
            let clock = header.map(|header| (boot(header), header.monotonic_offset_ns));
            let map = made.entry(clock).or_insert_with(|| self.map(header));
            map.clone()
        };
        headers.map(&mut map).collect()
    }

    /// Returns the curve that converts times on the common axis to wall-clock time. `None` if the
    /// reference clock has no anchors.
    pub(crate) fn wall(&self) -> Option<&Curve> {
        self.wall.as_ref()
    }

    /// Returns true if there is evidence that aligns the recording's boot.
    pub(crate) fn is_placed(&self, header: &FragmentHeader) -> bool {
        let boot = self.boots.get(&boot(header));
        boot.is_some_and(|(placement, _)| placement.method != "none")
    }

    pub(crate) fn placements(&self) -> Vec<Placement> {
        let placements = self.boots.values().map(|(placement, _)| placement);
        placements.cloned().collect()
    }
}

impl ClockEvidence<'_> {
    fn collect_ends(&self, boots: &[Boot], hosts: &Hosts) -> io::Result<Sorted<End>> {
        let number = |header: Option<&FragmentHeader>| {
            let number = boots.binary_search(&boot(header?)).ok()?;
            u32::try_from(number).ok()
        };
        // Flows of other profilers' traces do not lead to other inputs, but their collectives do.
        let recordings = || self.recordings.iter();
        let own = recordings().map(|recording| number(recording.header()));
        let all = recordings().map(|recording| number(recording.clock_header()));
        let (mut own, all): (Vec<_>, Vec<_>) = (own.collect(), all.collect());
        if own.iter().flatten().collect::<BTreeSet<_>>().len() < 2 {
            own.fill(None);
        }
        let mut ends = Sorter::in_any(self.folders, MAX_END_BYTES);
        collect_flow_ends(&mut ends, self.recordings, &own, self.view)?;
        let collectives = CollectiveSearch {
            evidence: self,
            boots: &all,
            hosts,
        };
        collectives.collect(&mut ends)?;
        ends.finish()
    }
}

/// Reads the chunks again whose sources have flow events, and adds each end of a flow to `sorter`.
/// `boots` contains the number of the boot (the clock) of each recording; recordings without one
/// are skipped.
fn collect_flow_ends(
    sorter: &mut Sorter<'_, End>,
    recordings: &[Recording],
    boots: &[Option<u32>],
    ChunkView { sources, chunks }: ChunkView<'_>,
) -> io::Result<()> {
    let may_have = |number: &usize| {
        let source = &sources[chunks[*number].source];
        boots[source.recording].is_some()
            && source.summary.phases.keys().any(|phase| phase.is_flow())
    };
    let scan = |number: usize| {
        let (chunk, mut ends) = (&chunks[number], Vec::new());
        let source = &sources[chunk.source];
        let header = recordings[source.recording].clock_header();
        let offset_ns = header.map_or(0, |header| header.monotonic_offset_ns);
        chunk.for_each_recorded(source.bytes, |event| {
            ends.extend(flow_end(&event, boots[source.recording], offset_ns));
        });
        ends
    };
    let numbers = (0..chunks.len()).filter(may_have);
    sorter.extend(map_chunks(numbers, BatchSize::Small, scan).flatten())
}

fn flow_end(event: &Event<'_>, boot: Option<u32>, offset_ns: i64) -> Option<End> {
    let role = match event.phase {
        Phase::FlowStart => Role::Start,
        Phase::FlowStep => Role::Step,
        Phase::FlowEnd => Role::End,
        _ => return None,
    };
    let id = flow::global_id(event)?;
    let labels = Labels::new(event); // viewers distinguish flows by these as well
    let labels = u64::from(labels.name) << 32 | u64::from(labels.category);
    Some(End {
        flow: id ^ labels.rotate_left(7),
        role,
        boot: boot?,
        at_ns: clamp(event.ts_ns.saturating_sub(clamp(offset_ns))),
    })
}

/// Maximum number of clock readings for each host.
const MAX_READINGS: usize = 4096;

/// Clock readings and event times of a recording.
pub(crate) struct RecordedClock<'a> {
    pub(crate) header: &'a FragmentHeader,
    pub(crate) anchors: &'a [Anchor],
    /// Times of its first and last event, in its own time.
    pub(crate) events_ns: Option<(i64, i64)>,
}

/// Returns a host for each boot, with the readings of its recordings. `is_all` is true if all their
/// events are known, not only the first ones.
pub(super) fn hosts(boots: &[Boot], known: &[RecordedClock<'_>], is_all: bool) -> Vec<Host> {
    let mut drafts: Vec<HostDraft> = Vec::new();
    drafts.resize_with(boots.len(), HostDraft::default);
    let mut each = |add: &dyn Fn(&mut HostDraft, &RecordedClock<'_>)| {
        for known in known {
            if let Ok(number) = boots.binary_search(&boot(known.header)) {
                add(&mut drafts[number], known);
            }
        }
    };
    each(&HostDraft::add_events);
    each(&|draft, known| draft.add_readings(known, is_all));
    drafts.into_iter().map(HostDraft::into_host).collect()
}

/// A host under construction.
#[derive(Default)]
struct HostDraft {
    readings: Vec<Reading>,
    /// Readings that are only used if there are no others.
    lone: Vec<Reading>,
    events_ns: Option<(i64, i64)>,
}

impl HostDraft {
    fn add_events(&mut self, known: &RecordedClock<'_>) {
        let own = |ns: i64| clamp(ns.saturating_sub(known.header.monotonic_offset_ns));
        let events = known.events_ns.map(|(first, last)| (own(first), own(last)));
        self.events_ns = match (self.events_ns, events) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }

    fn add_readings(&mut self, known: &RecordedClock<'_>, is_all: bool) {
        let offset_ns = known.header.monotonic_offset_ns;
        let readings = known.anchors.iter();
        let mut readings: Vec<Reading> = readings
            .map(|anchor| Reading::from_anchor(anchor, offset_ns))
            .collect();
        drop_disordered(&mut readings, |reading| reading.at_ns);
        if let Some(events_ns) = self.events_ns.filter(|_| is_all) {
            append_readings(
                &mut self.lone,
                remove_lone_readings(&mut readings, events_ns),
            );
        }
        drop_odd(&mut readings);
        append_readings(&mut self.readings, readings);
    }

    fn into_host(self) -> Host {
        let mut readings = match self.readings.is_empty() {
            true => self.lone,
            false => self.readings,
        };
        // The first and the last reading of a recording have neighbours in other recordings.
        readings.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        drop_odd(&mut readings);
        Host {
            wall: Wall::from_readings(readings),
            events_ns: self.events_ns,
        }
    }
}

/// Adds readings of another recording, and thins them out if there are too many.
fn append_readings(all: &mut Vec<Reading>, readings: Vec<Reading>) {
    all.extend(readings);
    if all.len() > 2 * MAX_READINGS {
        all.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        thin(all, MAX_READINGS, |reading| *reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{anchor, header};

    /// Anchors at the beginning of a segment are not covered by a checksum.
    #[test]
    fn damaged_anchors_do_not_move_a_host() {
        let header = header(1);
        let good: Vec<Anchor> = (0..40)
            .map(|n| anchor(n * 5_000_000_000, 1_000 + n * 5_000_000_000))
            .collect();
        let place = |anchors: &[Anchor]| {
            let known = RecordedClock {
                events_ns: Some((5_000_000_000, 190_000_000_000)),
                header: &header,
                anchors,
            };
            let hosts = hosts(&[boot(&header)], &[known], true);
            let wall = hosts.into_iter().next().and_then(|host| host.wall).unwrap();
            (wall.curve.as_shift(), wall.steps)
        };
        assert_eq!(place(&good), (Some(1_000), 0));
        for at in [0, 1, 17, 39] {
            for monotonic_ns in [0, 590_000_000_000, 5_900_000_000_000, u64::MAX] {
                let mut anchors = good.clone();
                anchors[at].monotonic_ns = monotonic_ns;
                let is_so = at == 0 && monotonic_ns == 0;
                assert!(is_so || anchors != good);
                assert_eq!(place(&anchors), (Some(1_000), 0), "{at} {monotonic_ns}");
            }
        }
        // A single anchor is trusted.
        assert_eq!(
            place(&[anchor(5_900_000_000_000, 5_900_000_000_500)]).0,
            Some(500)
        );
    }
}
