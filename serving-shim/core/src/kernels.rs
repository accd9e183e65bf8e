//! The kernels of a device's launches by MSPTI: which records are whose, and their slices.
//!
//! The pair of events around a launch is its bracket. A replay keeps the slice of its pair, in which its kernels lie. A kernel that was launched by
//! itself gets the times of its record instead. Where no record comes, the pair's times stand.

use crate::counts::{Counts, InFlight, KernelCounts, add, count};
use crate::graphs::{self, RecordCount};
use crate::group::DeviceGroup;
use crate::mspti::{Kernel, Mspti};
use crate::place::Placed;
use crate::track::{Method, write_kernel};
use align::align;
use bracket::Replay;
pub(crate) use bracket::{Bracket, OfPair, Shown};
use records::{Key, Records, are_in_order};
use sa_recorder::{Track, now_ns};
use sought::{Offset, Sought};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

mod align;
mod bracket;
mod names;
mod placing;
mod records;
mod sought;

/// Records are there, if they come, when the end of their launch was seen so long ago; what is not clear by then is looked at together.
const ALIGN_NS: u64 = 300_000_000;
/// ... and now nobody waits for them any longer.
const SETTLE_NS: u64 = 1_000_000_000;

/// So many launches at least must have the record of another kernel before the offset is doubted: of one its own may be lost.
const MIN_OTHERS: usize = 2;
/// Between two looks at what is not clear: each tries many offsets.
const ALIGN_AGAIN_NS: u64 = 100_000_000;

/// Replays of which it is known when they ran: more than run in the time that records take.
const MAX_REPLAYS: usize = 1024;
/// Most launches whose kernels are looked for at once.
const MAX_BRACKETS: usize = 1 << 14;

/// Those of a device.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    brackets: Vec<Bracket>,
    records: Records,
    offset: Option<Offset>,
    /// It may be another one for the last launches.
    is_doubted: bool,
    aligned_ns: u64,
    /// The last replays, the newest first.
    replays: VecDeque<Replay>,
    /// What ended before this is not among them any more, by the device's time.
    replays_since_ns: i64,
    /// Streams in which replays are under way, and when the first of these was launched, by the host's time.
    pending: Vec<(u32, u64)>,
    /// Of a replay that was launched before this it is not known when it ran, by the host's time.
    lost_ns: Option<u64>,
    /// Rows of streams that nothing is launched into.
    rows: BTreeMap<u32, Track>,
    /// Whose kernels are known: the address that stands for each is not to be used again.
    graphs: BTreeMap<usize, Arc<graphs::Kernels>>,
}

/// Where slices go, and counts.
pub(crate) struct Sink<'a> {
    pub(crate) group: &'a DeviceGroup,
    pub(crate) launches: &'a Counts,
    pub(crate) under_way: &'a InFlight,
    pub(crate) counts: &'a KernelCounts,
    pub(crate) records: &'a InFlight,
}

impl Kernels {
    /// Something was launched into a stream.
    pub(crate) fn launched(&mut self, stream: i32) {
        self.records.launched(stream.cast_unsigned());
    }

    /// Looks for the kernels of a launch; the pair's slice is written now, unless a record may take its place.
    pub(crate) fn add(&mut self, bracket: Bracket, sink: &Sink<'_>) {
        let is_full = self.brackets.len() >= MAX_BRACKETS;
        if !bracket.waits || is_full {
            bracket.write_pair(sink);
        }
        if let Some(replay) = bracket.replay() {
            if self.replays.len() >= MAX_REPLAYS
                && let Some(gone) = self.replays.pop_back()
            {
                self.replays_since_ns = self.replays_since_ns.max(gone.between.1);
            }
            self.replays.push_front(replay);
        }
        if is_full {
            let records = bracket.sought.at_least.sum();
            return sink.records.end(records, records, &sink.counts.missing);
        }
        self.brackets.push(bracket);
    }

    /// In these streams replays are under way, the first one launched then, by the host's time.
    pub(crate) fn replays_pending(&mut self, first_ns: impl Iterator<Item = (i32, u64)>) {
        let first_ns = first_ns.map(|(stream, ns)| (stream.cast_unsigned(), ns));
        self.pending.clear();
        self.pending.extend(first_ns);
    }

    /// When a replay ran that was launched before now will not be known.
    pub(crate) fn replay_lost(&mut self) {
        self.lost_ns = Some(now_ns());
    }

    /// Whether no other replay ran at the same time.
    fn is_alone(&self, bracket: &Bracket) -> bool {
        let Some(own) = bracket.replay() else {
            return true;
        };
        let (start, end) = own.between;
        // A stream runs one after the other.
        let meanwhile =
            |one: &Replay| one.stream != own.stream && one.between.1 > start && one.between.0 < end;
        let end_ns = bracket.end_ns();
        let is_pending = |(stream, ns): &(u32, u64)| *stream != own.stream && *ns < end_ns;
        let asked_ns = bracket.shown.launched.asked_ns;
        start >= self.replays_since_ns
            && !self.replays.iter().any(meanwhile)
            && !self.pending.iter().any(is_pending)
            && self.lost_ns.is_none_or(|ns| ns <= asked_ns)
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
        self.is_doubted |= self.is_stale(now);
        self.settle_whole(sink);
        if is_due {
            while self.settle_unclear(sink, |one| end || one.is_older(now, ALIGN_NS)) {}
            self.aligned_ns = now_ns();
        }
        self.settle_rest(sink, |one| end || one.is_older(now, SETTLE_NS));
        if self.is_idle() {
            self.is_doubted = false; // nobody is left by whom it could be found anew
        }
    }

    /// Those of which all kernels are there once the offset is looked for anew; whether there were any. It has been another one for some.
    fn settle_unclear(&mut self, sink: &Sink<'_>, is_unclear: impl Fn(&Bracket) -> bool) -> bool {
        let unclear = self.brackets.iter().filter(|one| is_unclear(one));
        let unclear: Vec<&Sought> = unclear.map(|one| &one.sought).collect();
        let Some(offset) = align(&unclear, &self.records) else {
            return false;
        };
        (self.offset, self.is_doubted) = (Some(offset), false);
        let before = self.brackets.len();
        self.settle_whole(sink);
        self.brackets.len() < before
    }

    /// Whether the offset is another one for the last launches: it gives most of them the records of other kernels.
    fn is_stale(&self, now_ns: u64) -> bool {
        let Some(offset) = self.offset else {
            return false;
        };
        let (mut own, mut others) = (0, 0);
        let young = self.brackets.iter();
        let young = young.filter(|one| one.waits && !one.is_older(now_ns, ALIGN_NS));
        for Bracket { sought, .. } in young {
            if let [(_, only)] = self.records.of(sought, offset)[..] {
                match self.records.are_others(sought, std::iter::once(only)) {
                    true => others += 1,
                    false => own += 1,
                }
            }
        }
        others >= MIN_OTHERS && others > own
    }

    /// Those of which all kernels are there.
    fn settle_whole(&mut self, sink: &Sink<'_>) {
        let Some(mut offset) = self.offset.filter(|_| !self.is_doubted) else {
            return;
        };
        let mut rest = Vec::new();
        for mut bracket in std::mem::take(&mut self.brackets) {
            let found = self.records.of(&bracket.sought, offset);
            let own = bracket.sought.offset_of(found.iter().map(|(_, one)| *one));
            let kernels = found.iter().map(|(_, one)| *one);
            let is_whole = self.records.is_whole(&bracket.sought, found.len());
            let is_sure = self.records.are_sure(&bracket.sought, kernels);
            let fits = is_whole && own.is_possible() && is_sure;
            if fits && (self.records.is_known(&bracket.sought) || self.is_alone(&bracket)) {
                // It has moved a little, or is known better now.
                offset = match own.and(offset) {
                    both if both.is_possible() => both,
                    _ => own,
                };
                let keys = found.iter().map(|(key, _)| *key).collect();
                self.offset = Some(offset);
                self.settle(sink, bracket, keys);
            } else {
                // Beside another replay some may be that one's: not again and again.
                if fits && !bracket.has_taught {
                    let kernels: Vec<Kernel> =
                        found.iter().map(|(_, one)| (*one).clone()).collect();
                    bracket.has_taught = true;
                    self.learn(&bracket, &kernels);
                }
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
            let keys = self.clear_ones(sink, &bracket);
            self.settle(sink, bracket, keys);
        }
    }

    /// The records of a launch, if that they are is clear. Where only the name of one speaks against it, kernels of several names may have such records.
    fn clear_ones(&mut self, sink: &Sink<'_>, bracket: &Bracket) -> Vec<Key> {
        let Some(offset) = self.offset else {
            return Vec::new();
        };
        let sought = &bracket.sought;
        let found = self.records.of(sought, offset);
        if found.is_empty() {
            self.doubt(sought);
            return Vec::new();
        }
        let kernels = found.iter().map(|(_, one)| *one);
        let own = sought.offset_of(kernels.clone());
        if self.records.is_too_much(sought, found.len()) || !own.wider(1).is_possible() {
            add(&sink.counts.impossible, found.len() as u64);
            return Vec::new();
        }
        if let [(_, only)] = found[..]
            && self.records.are_others(sought, std::iter::once(only))
        {
            let only = only.clone();
            self.records.learn_name(sought, &only);
            return Vec::new();
        }
        if self.is_doubted {
            return Vec::new(); // rather the pair's times than those of another launch
        }
        let is_sure = match self.records.is_known(sought) {
            true => self.records.are_sure(sought, kernels),
            false => self.is_alone(bracket) && are_in_order(kernels),
        };
        match is_sure {
            true => found.iter().map(|(key, _)| *key).collect(),
            false => Vec::new(),
        }
    }

    /// Writes the slices of a launch's kernels.
    fn settle(&mut self, sink: &Sink<'_>, bracket: Bracket, keys: Vec<Key>) {
        if sink.records.is_over() {
            return; // it is counted
        }
        let kernels = keys.into_iter().filter_map(|key| self.records.remove(key));
        let kernels: Vec<Kernel> = kernels.collect();
        self.learn_from(&bracket, &kernels);
        let (sought, clock, pair) = (&bracket.sought, &bracket.clock, &bracket.placed);
        let placed = placing::place_all(sought, clock, pair, &kernels, self.offset);
        // Where the clock has no place for them, they are missing too.
        let placed = placed.unwrap_or_default();
        let shown = &kernels[..placed.len()];
        match (&placed[..], bracket.waits) {
            ([only], true) => {
                self.records.learn_name(sought, &kernels[0]);
                bracket.shown.write(sink, only, Method::Mspti);
                count(&sink.counts.placed);
            }
            (_, true) => bracket.write_pair(sink),
            (placed, false) => {
                for (kernel, placed) in shown.iter().zip(placed) {
                    self.write(sink, &bracket, kernel, placed);
                }
            }
        }
        let missing = sought.at_least.missing(RecordCount::of(shown.iter()));
        let counter = &sink.counts.missing;
        sink.records.end(sought.at_least.sum(), missing, counter);
    }

    /// What a settled launch tells of its graph.
    fn learn_from(&mut self, bracket: &Bracket, kernels: &[Kernel]) {
        let sought = &bracket.sought;
        let is_whole = match self.records.expected(sought) {
            Some(expected) => {
                kernels.len() == expected && self.records.are_sure(sought, kernels.iter())
            }
            None => {
                let found = RecordCount::of(kernels.iter());
                sought.at_least.missing(found) == 0 && self.is_alone(bracket)
            }
        };
        if is_whole && self.records.is_known(sought) {
            self.records.believe(sought);
        } else if is_whole && !bracket.has_taught {
            self.learn(bracket, kernels);
        }
    }

    /// None of a launch's kernels ran.
    fn doubt(&mut self, sought: &Sought) {
        if self.records.doubt(sought)
            && let Some(graph) = sought.graph
        {
            self.forget(graph);
        }
    }

    /// A replay has all these, and no others.
    fn learn(&mut self, bracket: &Bracket, kernels: &[Kernel]) {
        let Some(graph) = &bracket.shown.launched.kernels else {
            return;
        };
        if self.records.is_full() {
            self.forget_graphs();
        }
        let address = Arc::as_ptr(graph).addr();
        let contested = self.records.contested(address, kernels);
        if !contested.is_empty() {
            // One of them is wrong. Whoever is right will be so again.
            return contested.into_iter().for_each(|other| self.forget(other));
        }
        if self.records.learn(address, kernels) {
            graph.know_records(Some(RecordCount::of(kernels.iter())));
        }
        if self.records.remembers(address) {
            self.graphs.insert(address, Arc::clone(graph));
        }
    }

    /// What was learnt of a graph is wrong.
    fn forget(&mut self, graph: usize) {
        self.records.forget(graph);
        if let Some(graph) = self.graphs.remove(&graph) {
            graph.know_records(None);
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
