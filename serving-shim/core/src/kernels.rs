//! The kernels of a device's launches by MSPTI: finds the launch of each record, and writes the slices.
//!
//! The pair of events around a launch is its bracket. A replay keeps the slice of its pair, and its kernels are inside that. A kernel that was launched
//! by itself gets the times of its record instead. If no record comes, it keeps the times of the pair.

use crate::graphs::{self, RecordCount};
use crate::mspti::{Kernel, Key, Mspti};
use crate::place::Placed;
use crate::runtime::Bounds;
use crate::tally::{Fate, Tally};
use crate::track::{DeviceGroup, MSPTI, write_kernel};
use align::align;
use bracket::Search;
pub(crate) use bracket::{Bracket, Shown};
use records::{Records, are_in_order};
use sa_recorder::{Track, now_ns};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

mod align;
mod bracket;
mod names;
mod placing;
mod records;

/// Records are there, if they come, this long after the end of their launch was seen. Launches that are unclear by then are looked at together.
const ALIGN_NS: u64 = 300_000_000;
/// This long after it the wait for records ends.
const SETTLE_NS: u64 = 1_000_000_000;

/// At least this many launches must have the record of another kernel before the offset is doubted: a single one may have lost its own.
const MIN_OTHERS: usize = 2;
/// Time between two looks at what is unclear: each of them tries many offsets.
const ALIGN_AGAIN_NS: u64 = 100_000_000;

/// Maximum number of replays whose times are kept: more than run in the time that records take.
const MAX_REPLAYS: usize = 1024;
/// Maximum number of launches whose kernels are looked for at once.
const MAX_BRACKETS: usize = 1 << 14;

/// The search for the kernels of a device.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) group: DeviceGroup,
    tally: &'static Tally,
    brackets: Vec<Bracket>,
    records: Records,
    offset: Option<Bounds>,
    /// True if the offset may have changed for the last launches.
    is_doubted: bool,
    aligned_ns: u64,
    /// Streams of the last replays and the device's times between which they ran, the newest first.
    replays: VecDeque<(u32, Bounds)>,
    /// Replays that ended before this time of the device have been dropped from `replays`.
    replays_since_ns: i64,
    /// Streams with replays under way, and the host time at which the first of these was launched.
    pending: Vec<(u32, u64)>,
    /// Host time before which a replay was launched whose times are not known.
    lost_ns: Option<u64>,
    /// Rows of streams that nothing is launched into.
    rows: BTreeMap<u32, Option<Track>>,
    /// Graphs whose kernels are known, by address. Holding them keeps the addresses from being used again.
    graphs: BTreeMap<usize, Arc<graphs::Kernels>>,
}

impl Kernels {
    pub(crate) fn new(group: DeviceGroup, tally: &'static Tally) -> Kernels {
        Kernels {
            group,
            tally,
            brackets: Vec::new(),
            records: Records::default(),
            offset: None,
            is_doubted: false,
            aligned_ns: 0,
            replays: VecDeque::new(),
            replays_since_ns: 0,
            pending: Vec::new(),
            lost_ns: None,
            rows: BTreeMap::new(),
            graphs: BTreeMap::new(),
        }
    }

    /// Notes that something was launched into a stream.
    pub(crate) fn launched(&mut self, stream: i32) {
        self.records.launched(stream.cast_unsigned());
    }

    /// Starts the search for the kernels of a launch. The slice of the pair is written now, unless a record may take its place.
    pub(crate) fn add(&mut self, bracket: Bracket) {
        let is_full = self.brackets.len() >= MAX_BRACKETS;
        if !bracket.waits || is_full {
            bracket.shown.write_pair(self.tally);
        }
        if let Some(replay) = bracket.replay() {
            if self.replays.len() >= MAX_REPLAYS
                && let Some((_, between)) = self.replays.pop_back()
            {
                self.replays_since_ns = self.replays_since_ns.max(between.high_ns);
            }
            self.replays.push_front(replay);
        }
        if is_full {
            let records = bracket.search.at_least.sum();
            return self.tally.end_records(records, records);
        }
        self.brackets.push(bracket);
    }

    /// Sets the streams with replays under way, and when the first of these was launched, by the host's time.
    pub(crate) fn replays_pending(&mut self, first_ns: impl Iterator<Item = (u32, u64)>) {
        self.pending = first_ns.collect();
    }

    /// Notes that the times of a replay that was launched before now will not be known.
    pub(crate) fn replay_lost(&mut self) {
        self.lost_ns = Some(now_ns());
    }

    /// Returns true if no other replay ran at the same time.
    fn is_alone(&self, bracket: &Bracket) -> bool {
        let Some((stream, between)) = bracket.replay() else {
            return true;
        };
        // A stream runs one replay after the other.
        let meanwhile = |(other, own): &(u32, Bounds)| {
            let both = own.and(between);
            *other != stream && both.low_ns < both.high_ns
        };
        let end_ns = bracket.end_ns();
        let is_pending = |(other, ns): &(u32, u64)| *other != stream && *ns < end_ns;
        let asked_ns = bracket.shown.launched.asked_ns;
        between.low_ns >= self.replays_since_ns
            && !self.replays.iter().any(meanwhile)
            && !self.pending.iter().any(is_pending)
            && self.lost_ns.is_none_or(|ns| ns <= asked_ns)
    }

    /// Returns true if nothing is looked for.
    pub(crate) fn is_idle(&self) -> bool {
        self.brackets.is_empty()
    }

    /// Looks at the records that have come. At the `end` no more will come.
    pub(crate) fn pass(&mut self, source: &Mspti, device: u32, end: bool) {
        let kernels = source.take(device);
        let is_new = !kernels.is_empty();
        let now = now_ns();
        let (no_room, unreadable) = source.take_losses();
        self.tally.add(Fate::NoRoom, no_room);
        self.tally.add(Fate::Unreadable, unreadable);
        let given_up = self.records.take(kernels, now);
        self.tally.add(Fate::OfNoLaunch, given_up);
        let is_due = end || now.saturating_sub(self.aligned_ns) > ALIGN_AGAIN_NS;
        if self.is_idle() || !(is_new || is_due) {
            return;
        }
        self.is_doubted |= self.is_stale(now);
        self.settle_whole();
        if is_due {
            while self.settle_unclear(|one| end || one.is_older(now, ALIGN_NS)) {}
            self.aligned_ns = now_ns();
        }
        self.settle_rest(|one| end || one.is_older(now, SETTLE_NS));
        if self.is_idle() {
            self.is_doubted = false; // no launch is left by which it could be found again
        }
    }

    /// Estimates the offset again, and settles every launch that is complete then. Returns true if there was one.
    fn settle_unclear(&mut self, is_unclear: impl Fn(&Bracket) -> bool) -> bool {
        let unclear = self.brackets.iter().filter(|one| is_unclear(one));
        let unclear: Vec<&Search> = unclear.map(|one| &one.search).collect();
        let Some(offset) = align(&unclear, &self.records) else {
            return false;
        };
        (self.offset, self.is_doubted) = (Some(offset), false);
        let before = self.brackets.len();
        self.settle_whole();
        self.brackets.len() < before
    }

    /// Returns true if the offset has changed for the last launches: it gives most of them the records of other kernels.
    fn is_stale(&self, now_ns: u64) -> bool {
        let Some(offset) = self.offset else {
            return false;
        };
        let is_young = |one: &&Bracket| one.waits && !one.is_older(now_ns, ALIGN_NS);
        let young = self.brackets.iter().filter(is_young);
        let found = young.map(|one| (&one.search, self.records.of(&one.search, offset)));
        let single = found.filter(|(_, found)| found.len() == 1);
        let is_other = single.map(|(search, one)| self.records.are_others(search, one.into_iter()));
        let (others, own): (Vec<bool>, Vec<bool>) = is_other.partition(|is_other| *is_other);
        others.len() >= MIN_OTHERS && others.len() > own.len()
    }

    /// Settles the launches whose kernels are all there.
    fn settle_whole(&mut self) {
        let Some(mut offset) = self.offset.filter(|_| !self.is_doubted) else {
            return;
        };
        let mut rest = Vec::new();
        for mut bracket in std::mem::take(&mut self.brackets) {
            let (records, search) = (&self.records, &bracket.search);
            let found = records.of(search, offset);
            let kernels = found.iter().copied();
            let own = search.offset_of(kernels.clone());
            let is_whole = records.expected(search) == Some(found.len());
            let fits = is_whole && own.is_possible() && records.are_sure(search, kernels);
            if fits && (records.is_known(search) || self.is_alone(&bracket)) {
                // It has moved a little, or is known better now.
                offset = own.and(offset).possible().unwrap_or(own);
                let keys = found.into_iter().map(Kernel::key).collect();
                self.offset = Some(offset);
                self.settle(bracket, keys);
            } else {
                // While another replay ran, some may belong to that one. So each launch teaches only once.
                if fits && !bracket.has_taught {
                    let kernels: Vec<Kernel> = found.into_iter().cloned().collect();
                    bracket.has_taught = true;
                    self.learn(&bracket, &kernels);
                }
                rest.push(bracket);
            }
        }
        self.brackets = rest;
    }

    /// Settles the launches whose wait is over, with the kernels that are there.
    fn settle_rest(&mut self, is_over: impl Fn(&Bracket) -> bool) {
        let over = self.brackets.extract_if(.., |one| is_over(one));
        for bracket in over.collect::<Vec<Bracket>>() {
            let keys = self.certain_records(&bracket).unwrap_or_default();
            self.settle(bracket, keys);
        }
    }

    /// Returns the records that certainly belong to a launch. If only the name of a single one contradicts that, it is learned: kernels of several names
    /// may have such records.
    fn certain_records(&mut self, bracket: &Bracket) -> Option<Vec<Key>> {
        let offset = self.offset?;
        let search = &bracket.search;
        let found = self.records.of(search, offset);
        if found.is_empty() {
            if let Some(graph) = search.graph
                && self.records.note_replay(graph, false)
            {
                self.forget(graph);
            }
            return None;
        }
        let kernels = found.iter().copied();
        let own = search.offset_of(kernels.clone());
        if self.records.is_too_much(search, found.len()) || !own.wider(1).is_possible() {
            self.tally.add(Fate::Impossible, found.len() as u64);
            return None;
        }
        if found.len() == 1 && self.records.are_others(search, kernels.clone()) {
            let only = found[0].clone();
            self.records.learn_name(search, &only);
            return None;
        }
        if self.is_doubted {
            return None; // the times of the pair are better than the times of another launch
        }
        let is_sure = match self.records.is_known(search) {
            true => self.records.are_sure(search, kernels),
            false => self.is_alone(bracket) && are_in_order(kernels),
        };
        is_sure.then(|| found.into_iter().map(Kernel::key).collect())
    }

    /// Writes the slices of a launch's kernels.
    fn settle(&mut self, bracket: Bracket, keys: Vec<Key>) {
        if self.tally.gave_up_records() {
            return; // it is counted
        }
        let kernels = keys.into_iter().filter_map(|key| self.records.remove(key));
        let kernels: Vec<Kernel> = kernels.collect();
        self.learn_from(&bracket, &kernels);
        let (search, clock, pair) = (&bracket.search, &bracket.clock, &bracket.shown.placed);
        let placed = placing::place_all(search, clock, pair, &kernels, self.offset);
        // If the clock has no place for them, they count as missing, too.
        let placed = placed.unwrap_or_default();
        let shown = &kernels[..placed.len()];
        match (&placed[..], bracket.waits) {
            ([only], true) => {
                self.records.learn_name(search, &kernels[0]);
                bracket.shown.write(self.tally, only, MSPTI);
                self.tally.count(Fate::Placed);
            }
            (_, true) => bracket.shown.write_pair(self.tally),
            (placed, false) => {
                for (kernel, placed) in shown.iter().zip(placed) {
                    self.write(&bracket, kernel, placed);
                }
            }
        }
        let missing = search.at_least.missing(RecordCount::of(shown.iter()));
        self.tally.end_records(search.at_least.sum(), missing);
    }

    /// Learns about its graph from a settled launch.
    fn learn_from(&mut self, bracket: &Bracket, kernels: &[Kernel]) {
        let search = &bracket.search;
        let is_whole = match self.records.expected(search) {
            Some(expected) => {
                kernels.len() == expected && self.records.are_sure(search, kernels.iter())
            }
            None => {
                let found = RecordCount::of(kernels.iter());
                search.at_least.missing(found) == 0 && self.is_alone(bracket)
            }
        };
        if is_whole && self.records.is_known(search) {
            search
                .graph
                .map(|graph| self.records.note_replay(graph, true));
        } else if is_whole && !bracket.has_taught {
            self.learn(bracket, kernels);
        }
    }

    /// Learns the records of a graph from a replay that has exactly these.
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
            // One of the graphs is wrong. The right one will be learned again.
            return contested.into_iter().for_each(|other| self.forget(other));
        }
        if self.records.learn(address, kernels) {
            graph.know_records(Some(RecordCount::of(kernels.iter())));
        }
        if self.records.remembers(address) {
            self.graphs.insert(address, Arc::clone(graph));
        }
    }

    /// Forgets what was learned about a graph, because it is wrong.
    fn forget(&mut self, graph: usize) {
        self.records.forget(graph);
        if let Some(graph) = self.graphs.remove(&graph) {
            graph.know_records(None);
        }
    }

    fn write(&mut self, bracket: &Bracket, kernel: &Kernel, placed: &Placed) {
        let track = match kernel.stream == bracket.search.stream {
            true => Some(bracket.shown.track),
            false => self.row(kernel.stream),
        };
        if let Some(track) = track {
            write_kernel(track, &bracket.shown.launched, kernel, placed);
            self.tally.count(Fate::Placed);
        } else {
            self.tally.count(Fate::NoRoom);
        }
    }

    /// Returns the row of a stream that nothing is launched into: its kernels never overlap.
    fn row(&mut self, stream: u32) -> Option<Track> {
        let row = self.rows.entry(stream).or_default();
        self.group.live_track(row, || format!("Stream {stream}"))
    }

    /// Forgets the graphs that the program has destroyed.
    fn forget_graphs(&mut self) {
        let is_gone = |_: &usize, graph: &mut Arc<_>| Arc::strong_count(graph) == 1;
        for (address, _) in self.graphs.extract_if(.., is_gone) {
            self.records.forget(address);
        }
    }
}
