//! Collects the times at which hosts ended the same collectives. They help to align the hosts'
//! clocks.
//!
//! No rank can end an all_reduce before all ranks have begun it, and from then on all have the same
//! work left. So they end it together, within the transfer time. That is at most the shortest part
//! of any rank, because the rank that comes last waits for nobody. Thus each collective bounds how
//! far two clocks can be apart, in both directions.
//!
//! Two slices are only known to be one collective by their names and numbers, so [`pairing`] checks
//! that first.

mod device_tracks;
mod pairing;

use crate::align::{End, Hosts, Role, clamp};
use crate::clock::clocks::ClockEvidence;
use crate::clock::collective_ends::device_tracks::DeviceTracks;
use crate::clock::collective_ends::pairing::Pairings;
use crate::event::collective::{CollectiveCounts, CollectiveKey};
use crate::pass::parallel::{BatchSize, ChunkView, map_chunks};
use crate::store::sorter::{Record, Sorted, Sorter};
use sa_format::Phase;
use std::collections::BTreeMap;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum memory in bytes for the members of collectives.
const MAX_MEMBER_BYTES: usize = 8 << 20;

/// Input of the search for collectives.
pub(super) struct CollectiveSearch<'a> {
    pub(super) evidence: &'a ClockEvidence<'a>,
    /// Number of each recording's boot.
    pub(super) boots: &'a [Option<u32>],
    /// The hosts, by the numbers of their boots.
    pub(super) hosts: &'a Hosts,
}

/// Part of a rank in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    /// Key of the collective. Its number is 0 until the rank's slices are counted.
    key: CollectiveKey,
    boot: u32,
    rank: u32,
    start_ns: i64,
    end_ns: i64,
}

/// Time at which the ranks of one host ended a collective.
#[derive(Clone, Copy, Debug)]
struct HostEnd {
    boot: u32,
    first_ns: i64,
    last_ns: i64,
    /// Upper bound of the transfer time: the shortest part of any rank of any host.
    transfer_ns: i64,
}

impl CollectiveSearch<'_> {
    /// Adds two arrows for each collective and pair of hosts: neither host ends it later than the
    /// other plus the transfer time.
    pub(super) fn collect(&self, ends: &mut Sorter<'_, End>) -> io::Result<()> {
        let tracks = DeviceTracks::new(
            self.evidence.recordings,
            self.evidence.summaries,
            self.boots,
        );
        let (counts, members) = self.members(&tracks)?;
        // If ranks have different numbers of collectives, or if two traces declare the same rank,
        // it is unknown which collectives belong together.
        let is_whole = |group: &[Member]| {
            let count = |member: &Member| counts.count(member.key.group, member.rank);
            let is_paired = group.iter().all(|member| count(member) == count(&group[0]));
            is_paired && !tracks.share_declared_rank(group.iter().map(|member| member.rank))
        };
        for group in members.chunk_by(|one, next| one.key.group == next.key.group) {
            let collectives = || {
                let all = group.chunk_by(|one, next| one.key == next.key);
                let whole = all.filter(|members| is_whole(members));
                whole.flat_map(|members| pairs(members[0].key, &host_ends(members)))
            };
            let mut pairings = Pairings::default();
            for (_, one, other) in collectives() {
                pairings.add(one, other, self.hosts);
            }
            let certain = pairings.certain_pairs();
            let is_certain =
                |one: HostEnd, other: HostEnd| certain.contains(&(one.boot, other.boot));
            for (key, one, other) in
                collectives().filter(|(_, one, other)| is_certain(*one, *other))
            {
                push_arrow(key, one, other, ends)?;
                push_arrow(key, other, one, ends)?;
            }
        }
        Ok(())
    }

    /// Returns the parts of all ranks, sorted by collective.
    fn members(&self, tracks: &DeviceTracks) -> io::Result<(CollectiveCounts, Sorted<Member>)> {
        let slices = self.slices(tracks)?;
        let mut counts = CollectiveCounts::default();
        let mut members = Sorter::in_any(self.evidence.folders, MAX_MEMBER_BYTES);
        slices.each(|slice| {
            let Some(key) = counts.next(slice.key.group, slice.rank) else {
                return Ok(());
            };
            members.push(Member { key, ..slice })
        })?;
        Ok((counts, members.finish()?))
    }

    /// Returns the slices of collectives that end together, sorted by rank and time.
    fn slices(&self, tracks: &DeviceTracks) -> io::Result<Sorted<Member>> {
        let mut slices = Sorter::in_any(self.evidence.folders, MAX_MEMBER_BYTES);
        let ChunkView { sources, chunks } = self.evidence.view;
        let may_have = |number: &usize| {
            let source = &sources[chunks[*number].source];
            tracks.has_tracks(source.recording)
                && source.summary.phases.contains_key(&Phase::Complete)
        };
        let scan = |number: usize| {
            let (chunk, mut found) = (&chunks[number], Vec::new());
            let source = &sources[chunk.source];
            let header = self.evidence.recordings[source.recording].clock_header();
            let offset_ns = header.map_or(0, |header| header.monotonic_offset_ns);
            let boot = self.boots[source.recording];
            chunk.for_each_recorded(source.bytes, |event| {
                let slice = boot.and_then(|boot| {
                    let (rank, collective) = tracks.collective(source.recording, &event)?;
                    let (group, nth) = (collective.group, 0);
                    let start_ns = clamp(event.ts_ns.saturating_sub(clamp(offset_ns)));
                    Some(Member {
                        key: CollectiveKey { group, nth },
                        boot,
                        rank,
                        start_ns,
                        end_ns: clamp(start_ns.saturating_add(event.dur_ns)),
                    })
                });
                found.extend(slice);
            });
            found
        };
        let numbers = (0..chunks.len()).filter(may_have);
        slices.extend(map_chunks(numbers, BatchSize::Small, scan).flatten())?;
        slices.finish()
    }
}

fn host_ends(members: &[Member]) -> Vec<HostEnd> {
    let durations = members.iter();
    let durations = durations.map(|member| member.end_ns.saturating_sub(member.start_ns));
    let transfer_ns = durations.min().unwrap_or(0);
    let mut hosts: BTreeMap<u32, HostEnd> = BTreeMap::new();
    for member in members {
        let host = hosts.entry(member.boot).or_insert(HostEnd {
            boot: member.boot,
            first_ns: member.end_ns,
            last_ns: member.end_ns,
            transfer_ns,
        });
        host.first_ns = host.first_ns.min(member.end_ns);
        host.last_ns = host.last_ns.max(member.end_ns);
    }
    hosts.into_values().collect()
}

/// Pairs the first host of a collective with each other one. Bounds between any two hosts follow
/// from these, and all pairs of many hosts would be too many.
fn pairs(
    key: CollectiveKey,
    hosts: &[HostEnd],
) -> impl Iterator<Item = (CollectiveKey, HostEnd, HostEnd)> + use<> {
    let others: Vec<HostEnd> = hosts.iter().skip(1).copied().collect();
    let first = hosts.first().copied().into_iter().cycle();
    first.zip(others).map(move |(one, other)| (key, one, other))
}

/// Adds an arrow: all ranks of the host `from` end before the first rank of `to` ends, plus the
/// transfer time.
fn push_arrow(
    key: CollectiveKey,
    from: HostEnd,
    to: HostEnd,
    ends: &mut Sorter<'_, End>,
) -> io::Result<()> {
    let mut name = [0; 20];
    name[..8].copy_from_slice(&key.group.to_le_bytes());
    for (number, at) in [key.nth, from.boot, to.boot].into_iter().zip([8, 12, 16]) {
        name[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let flow = xxh3_64(&name);
    let over_ns = clamp(to.first_ns.saturating_add(from.transfer_ns));
    for (role, boot, at_ns) in [
        (Role::Collective, from.boot, from.last_ns),
        (Role::CollectiveOver, to.boot, over_ns),
    ] {
        ends.push(End {
            flow,
            role,
            boot,
            at_ns,
        })?;
    }
    Ok(())
}

impl Record for Member {}
