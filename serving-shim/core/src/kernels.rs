//! The kernels of a device's launches by MSPTI: which records are whose, and their slices.
//!
//! The pair of events around a launch is its bracket. A replay keeps the slice of its pair, in which its kernels lie. A kernel that was launched by
//! itself gets the times of its record instead. Where no record comes, the pair's times stand.

use crate::clock::DeviceClock;
use crate::counts::{KernelCounts, add, count};
use crate::description::Kind;
use crate::graphs;
use crate::group::DeviceGroup;
use crate::mspti::{Kernel, Mspti};
use crate::pending::Launched;
use crate::place::Placed;
use crate::track::{Method, write_kernel, write_slice};
use align::align;
use records::{Key, MAX_GRAPHS, Records};
use sa_recorder::{Track, now_ns};
use sought::{Offset, Sought};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

mod align;
mod placing;
mod records;
mod sought;

/// Records are there, if they come, when the end of their launch was seen so long ago; what is not clear by then is looked at together.
const ALIGN_NS: u64 = 300_000_000;
/// ... and now nobody waits for them any longer.
const SETTLE_NS: u64 = 1_000_000_000;

/// Between two looks at what is not clear: each tries many offsets.
const ALIGN_AGAIN_NS: u64 = 100_000_000;

/// Replays of which it is known when they ran: more than run in the time that records take.
const MAX_REPLAYS: usize = 1024;
/// Most launches whose kernels are looked for at once.
const MAX_BRACKETS: usize = 1 << 14;

/// A launch whose kernels are looked for.
#[derive(Debug)]
pub(crate) struct Bracket {
    sought: Sought,
    clock: DeviceClock,
    shown: Shown,
    /// Where the pair is.
    placed: Placed,
    /// The pair's slice was not written: the record takes its place.
    waits: bool,
    added_ns: u64,
}

/// What a pair of events says of a launch.
#[derive(Debug)]
pub(crate) struct OfPair {
    pub(crate) placed: Placed,
    /// The times of the device between which it has run.
    pub(crate) between: (i64, i64),
}

/// How a launch is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) launched: Launched,
    pub(crate) flow: u64,
    /// Its row, which has room for the pair.
    pub(crate) track: Track,
}

/// Those of a device.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    brackets: Vec<Bracket>,
    records: Records,
    offset: Option<Offset>,
    aligned_ns: u64,
    /// When the last replays ran, by the device's time; the newest first.
    replays: VecDeque<(i64, i64)>,
    /// Rows of streams that nothing is launched into.
    rows: BTreeMap<u32, Track>,
    /// Whose kernels are known: the address that stands for each is not to be used again.
    graphs: BTreeMap<usize, Arc<graphs::Kernels>>,
}

/// Where slices go, and counts.
pub(crate) struct Sink<'a> {
    pub(crate) group: &'a DeviceGroup,
    pub(crate) counts: &'a KernelCounts,
}

impl Bracket {
    /// The bracket of a launch that has ended; `ahead_ns` is what the wall clock is ahead of the monotonic one.
    pub(crate) fn new(pair: OfPair, shown: Shown, clock: DeviceClock, ahead_ns: i64) -> Bracket {
        let (start_ns, end_ns) = pair.between;
        let launched = &shown.launched;
        let is_plain = launched.description.kind == Kind::Kernel;
        let kernels = launched.kernels.as_ref();
        let exact = kernels.and_then(|one| usize::try_from(one.exact_count()?).ok());
        let graph = kernels.map_or(0, |one| Arc::as_ptr(one).addr());
        Bracket {
            sought: Sought {
                start_ns,
                end_ns,
                stream: launched.stream_id.cast_unsigned(),
                graph: (!is_plain).then_some(graph),
                expected: if is_plain { Some(1) } else { exact },
                prior_ns: pair.placed.start_ns.cast_signed() + ahead_ns - start_ns,
            },
            clock,
            waits: is_plain,
            placed: pair.placed,
            shown,
            added_ns: now_ns(),
        }
    }

    fn write_pair(&self) {
        self.shown.write(&self.placed, Method::EventPair);
    }

    fn is_older(&self, now_ns: u64, than_ns: u64) -> bool {
        now_ns.saturating_sub(self.added_ns) > than_ns
    }
}

impl Shown {
    fn write(&self, placed: &Placed, method: Method) {
        write_slice(self.flow, self.track, &self.launched, placed, method);
    }
}

impl Kernels {
    /// Something was launched into a stream.
    pub(crate) fn launched(&mut self, stream: i32) {
        self.records.launched(stream.cast_unsigned());
    }

    /// Looks for the kernels of a launch; the pair's slice is written now, unless a record may take its place.
    pub(crate) fn add(&mut self, bracket: Bracket, counts: &KernelCounts) {
        let is_full = self.brackets.len() >= MAX_BRACKETS;
        if !bracket.waits || is_full {
            bracket.write_pair();
        }
        if is_full {
            let missing = bracket.sought.expected.unwrap_or(1);
            return add(&counts.missing, missing as u64);
        }
        if bracket.sought.graph.is_some() {
            self.replays.truncate(MAX_REPLAYS - 1);
            self.replays.push_front(bracket.sought.between());
        }
        self.brackets.push(bracket);
    }

    /// Whether no other replay ran at the same time.
    fn is_alone(&self, sought: &Sought) -> bool {
        let (start, end) = sought.between();
        let others = self.replays.iter().filter(|one| **one != (start, end));
        others
            .into_iter()
            .all(|(from, to)| *to <= start || *from >= end)
    }

    /// Whether nothing is looked for.
    pub(crate) fn is_idle(&self) -> bool {
        self.brackets.is_empty()
    }

    /// Looks at the records that have come. At the `end` nothing more will.
    pub(crate) fn pass(&mut self, source: &Mspti, device: u32, sink: &Sink<'_>, end: bool) {
        let kernels = source.take(device);
        let is_new = !kernels.is_empty();
        let now = now_ns();
        add(&sink.counts.no_room, source.take_dropped());
        add(&sink.counts.unreadable, source.take_unreadable());
        add(&sink.counts.of_no_launch, self.records.take(kernels, now));
        let is_due = end || now.saturating_sub(self.aligned_ns) > ALIGN_AGAIN_NS;
        if self.is_idle() || !(is_new || is_due) {
            return;
        }
        self.settle_whole(sink);
        if is_due {
            while self.settle_unclear(sink, |one| end || one.is_older(now, ALIGN_NS)) {}
            self.aligned_ns = now_ns();
        }
        self.settle_rest(sink, |one| end || one.is_older(now, SETTLE_NS));
    }

    /// Those of which all kernels are there once the offset is looked for anew; whether there were any. It has been another one for some.
    fn settle_unclear(&mut self, sink: &Sink<'_>, is_unclear: impl Fn(&Bracket) -> bool) -> bool {
        let unclear = self.brackets.iter().filter(|one| is_unclear(one));
        let unclear: Vec<&Sought> = unclear.map(|one| &one.sought).collect();
        let Some(offset) = align(&unclear, &self.records) else {
            return false;
        };
        self.offset = Some(offset);
        let before = self.brackets.len();
        self.settle_whole(sink);
        self.brackets.len() < before
    }

    /// Those of which all kernels are there.
    fn settle_whole(&mut self, sink: &Sink<'_>) {
        let Some(mut offset) = self.offset else {
            return;
        };
        let mut rest = Vec::new();
        for bracket in std::mem::take(&mut self.brackets) {
            let found = self.records.of(&bracket.sought, offset);
            let own = bracket.sought.offset_of(found.iter().map(|(_, one)| *one));
            let kernels = found.iter().map(|(_, one)| *one);
            let is_sure = self.records.are_sure(&bracket.sought, kernels);
            if bracket.sought.is_whole(found.len()) && own.is_possible() && is_sure {
                // It has moved a little, or is known better now.
                offset = match own.and(offset) {
                    both if both.is_possible() => both,
                    _ => own,
                };
                let keys = found.iter().map(|(key, _)| *key).collect();
                self.offset = Some(offset);
                self.settle(sink, bracket, keys);
            } else {
                rest.push(bracket);
            }
        }
        self.brackets = rest;
    }

    /// Those that nobody waits for any longer, with the kernels that are there.
    fn settle_rest(&mut self, sink: &Sink<'_>, is_over: impl Fn(&Bracket) -> bool) {
        let (over, rest): (Vec<Bracket>, Vec<Bracket>) = self.brackets.drain(..).partition(is_over);
        self.brackets = rest;
        for bracket in over {
            let keys = self.clear_ones(sink, &bracket.sought);
            self.settle(sink, bracket, keys);
        }
    }

    /// The records of a launch, if that they are is clear.
    fn clear_ones(&self, sink: &Sink<'_>, sought: &Sought) -> Vec<Key> {
        let Some(offset) = self.offset else {
            return Vec::new();
        };
        let found = self.records.of(sought, offset);
        if found.is_empty() {
            return Vec::new();
        }
        let own = sought.offset_of(found.iter().map(|(_, one)| *one));
        let kernels = found.iter().map(|(_, one)| *one);
        let is_sure = self.records.are_sure(sought, kernels) || self.is_alone(sought);
        if !sought.is_too_much(found.len()) && own.wider(1).is_possible() && is_sure {
            return found.iter().map(|(key, _)| *key).collect();
        }
        add(&sink.counts.impossible, found.len() as u64);
        Vec::new()
    }

    /// Writes the slices of a launch's kernels.
    fn settle(&mut self, sink: &Sink<'_>, bracket: Bracket, keys: Vec<Key>) {
        let kernels = keys.into_iter().filter_map(|key| self.records.remove(key));
        let kernels: Vec<Kernel> = kernels.collect();
        let expected = bracket.sought.expected.unwrap_or(0);
        let missing = expected.saturating_sub(kernels.len());
        add(&sink.counts.missing, missing as u64);
        if bracket.sought.is_whole(kernels.len()) {
            self.learn(&bracket, &kernels);
        } else if kernels.is_empty() && self.records.doubt(&bracket.sought) {
            bracket.sought.graph.map(|graph| self.graphs.remove(&graph));
        }
        let (sought, clock, pair) = (&bracket.sought, &bracket.clock, &bracket.placed);
        let placed = placing::place_all(sought, clock, pair, &kernels, self.offset);
        let placed = placed.unwrap_or_default();
        match (&placed[..], bracket.waits) {
            ([only], true) => {
                bracket.shown.write(only, Method::Mspti);
                count(&sink.counts.placed);
            }
            (_, true) => bracket.write_pair(),
            (placed, false) => {
                for (kernel, placed) in kernels.iter().zip(placed) {
                    self.write(sink, &bracket, kernel, placed);
                }
            }
        }
    }

    fn write(&mut self, sink: &Sink<'_>, bracket: &Bracket, kernel: &Kernel, placed: &Placed) {
        let track = match kernel.stream == bracket.sought.stream {
            true => Some(bracket.shown.track),
            false => self.row(sink, kernel.stream),
        };
        if let Some(track) = track {
            write_kernel(track, &bracket.shown.launched, kernel, placed);
            count(&sink.counts.placed);
        } else {
            count(&sink.counts.no_room);
        }
    }

    /// The row of a stream that nothing is launched into: its kernels never overlap.
    fn row(&mut self, sink: &Sink<'_>, stream: u32) -> Option<Track> {
        let known = self.rows.get(&stream).copied();
        known.filter(|track| track.is_live()).or_else(|| {
            let track = sink.group.track(&format!("Stream {stream}"))?;
            self.rows.insert(stream, track);
            Some(track)
        })
    }

    fn learn(&mut self, bracket: &Bracket, kernels: &[Kernel]) {
        if self.graphs.len() >= MAX_GRAPHS {
            self.forget_graphs();
        }
        if let Some(graph) = &bracket.shown.launched.kernels
            && self.records.learn(&bracket.sought, kernels)
        {
            let address = Arc::as_ptr(graph).addr();
            self.graphs.insert(address, Arc::clone(graph));
        }
    }

    /// Forgets those that the program has destroyed.
    fn forget_graphs(&mut self) {
        let records = &mut self.records;
        self.graphs.retain(|address, graph| {
            let is_there = Arc::strong_count(graph) > 1;
            if !is_there {
                records.forget(*address);
            }
            is_there
        });
    }
}
