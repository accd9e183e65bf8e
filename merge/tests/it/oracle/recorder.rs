//! All blocks of one recorder and its ring: every position once, gaps told.

use super::Damage;
use super::file::Block;
use super::line::{self, Kept, Source};
use super::ring::{self, Rescue};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Slot and generation.
type StreamKey = (u32, u32);

/// One recorder's blocks and ring.
pub(super) struct Recorder {
    pub(super) source: Source,
    pub(super) blocks: Vec<Block>,
    /// Whether it has told of its clean exit.
    pub(super) ended: bool,
    file: String,
    rescue: Rescue,
    ring_damage: Option<&'static str>,
    expects_ring: bool,
    /// Whether two incomplete blocks claim the same positions.
    pub(super) ambiguous: bool,
    /// The damage of a block header torn at the end of the file.
    pub(super) torn_header: Option<Damage>,
}

/// Positions of one slot and generation that are accounted for.
#[derive(Default)]
struct Covered(Vec<(u64, u64)>);

impl Covered {
    fn holds(&self, from: u64, to: u64) -> bool {
        self.first_missing(from, to).is_none()
    }

    /// The first position in `from..to` that nothing covers.
    fn first_missing(&self, from: u64, to: u64) -> Option<u64> {
        let mut at = from;
        let mut ranges = self.0.clone();
        ranges.sort_unstable();
        for (start, end) in ranges {
            if start <= at {
                at = at.max(end);
            }
        }
        (at < to).then_some(at)
    }

    fn end(&self) -> u64 {
        self.0.iter().map(|range| range.1).max().unwrap_or(0)
    }

    /// How many ranges below `end` are missing.
    fn gaps(&self, end: u64) -> usize {
        let mut starts: Vec<u64> = self
            .0
            .iter()
            .map(|range| range.0)
            .filter(|start| *start <= end)
            .collect();
        starts.push(end);
        starts.sort_unstable();
        starts.dedup();
        let mut from = 0;
        let mut gaps = 0;
        for start in starts {
            gaps += usize::from(self.first_missing(from, start).is_some());
            from = start;
        }
        gaps
    }
}

impl Recorder {
    pub(super) fn new(
        source: &Source,
        folder: &Path,
        file: &str,
        header: Option<&Value>,
    ) -> Recorder {
        let stem = file.trim_end_matches(".jsonl");
        let mut recorder = Recorder {
            source: source.clone(),
            blocks: Vec::new(),
            ended: false,
            file: file.into(),
            rescue: Rescue::default(),
            ring_damage: None,
            expects_ring: false,
            ambiguous: false,
            torn_header: None,
        };
        let Some(header) = header.filter(|header| header["ring"] == "file") else {
            return recorder;
        };
        recorder.expects_ring = true;
        let nonce = u64::from_str_radix(header["nonce"].as_str().unwrap(), 16).unwrap();
        let pid = u32::try_from(header["pid"].as_u64().unwrap()).unwrap();
        match std::fs::read(folder.join(format!("{stem}.ring"))) {
            Err(_) => recorder.ring_damage = Some("ring_missing"),
            Ok(bytes) => match ring::read(&bytes, pid, nonce) {
                Some(rescue) => recorder.rescue = rescue,
                None => recorder.ring_damage = Some("bad_ring"),
            },
        }
        recorder
    }

    /// Adds the lines of the blocks and of the ring to `kept`, and tells what is missing.
    pub(super) fn settle(&mut self, kept: &mut Vec<Kept>, damage: &mut Vec<Damage>) {
        let mut values = Vec::new();
        let mut streams: BTreeMap<StreamKey, Covered> = BTreeMap::new();
        self.blocks
            .sort_by_key(|block| (block.slot, block.generation, block.from));
        for block in self.blocks.iter().filter(|block| block.content.is_some()) {
            let covered = streams.entry((block.slot, block.generation)).or_default();
            let (from, to) = (block.from, block.to());
            if let Some(missing) = covered.first_missing(from, to) {
                let skipped = usize::try_from(missing - from).unwrap();
                take(&block.content.as_ref().unwrap()[skipped..], &mut values);
                covered.0.push((missing, to));
            }
        }
        for tail in &self.rescue.tails {
            let covered = streams.entry((tail.slot, tail.generation)).or_default();
            let end = covered.end().max(tail.flushed);
            let skipped = usize::try_from(end - tail.flushed).unwrap();
            take(&tail.bytes[skipped.min(tail.bytes.len())..], &mut values);
            covered
                .0
                .push((end, tail.flushed + tail.bytes.len() as u64));
        }
        let broken = save_broken(&self.blocks, &mut streams, &mut values);
        self.ambiguous = overlap(&broken);
        let told = self.told(&values, kept);
        self.tell_missing(&broken, &streams, &told, damage);
        values.append(&mut self.rescue.unfinished);
        self.ended |= values.iter().any(|value| value["name"] == "sa_end");
        if self.ring_damage.is_none() && self.expects_ring {
            // A write that the kill cut short inside a block header: the ring holds all of it.
            damage.retain(|damage| Some(damage) != self.torn_header.as_ref());
        }
        if let Some(kind) = self.ring_damage.filter(|_| !self.ended) {
            damage.push((self.file.clone(), 0, kind.into()));
        }
        let source = &self.source;
        kept.extend(values.into_iter().map(|value| Kept {
            source: source.clone(),
            value,
        }));
    }

    /// The positions that loss records explain.
    fn told(&self, values: &[Value], kept: &[Kept]) -> BTreeMap<StreamKey, Vec<(u64, u64)>> {
        let mine = kept
            .iter()
            .filter(|kept| kept.source.recorder == self.source.recorder);
        let mut told: BTreeMap<StreamKey, Vec<(u64, u64)>> = BTreeMap::new();
        for value in values
            .iter()
            .chain(mine.map(|kept| &kept.value))
            .filter(|value| value["name"] == "sa_loss")
        {
            let number = |key: &str| value["args"][key].as_u64();
            if let (Some(slot), Some(generation), Some(from), Some(to)) =
                (number("slot"), number("gen"), number("from"), number("to"))
            {
                let key = (
                    u32::try_from(slot).unwrap(),
                    u32::try_from(generation).unwrap(),
                );
                told.entry(key).or_default().push((from, to));
            }
        }
        told
    }

    fn tell_missing(
        &self,
        broken: &[&Block],
        streams: &BTreeMap<StreamKey, Covered>,
        told: &BTreeMap<StreamKey, Vec<(u64, u64)>>,
        damage: &mut Vec<Damage>,
    ) {
        let accounted = |key: &StreamKey| {
            let told = told.get(key).into_iter().flatten();
            Covered(streams[key].0.iter().chain(told).copied().collect())
        };
        for block in broken {
            if !accounted(&(block.slot, block.generation)).holds(block.from, block.to()) {
                damage.push((block.file.clone(), block.offset, "bad_block".into()));
            }
        }
        for (key, covered) in streams {
            let mut accounted = accounted(key);
            let incomplete = broken
                .iter()
                .filter(|block| (block.slot, block.generation) == *key);
            accounted
                .0
                .extend(incomplete.map(|block| (block.from, block.to())));
            for _ in 0..accounted.gaps(covered.end()) {
                damage.push((self.file.clone(), 0, "gap".into()));
            }
        }
    }
}

/// Adds the lines of incomplete blocks that nothing else covers, and gives those blocks.
fn save_broken<'a>(
    blocks: &'a [Block],
    streams: &mut BTreeMap<StreamKey, Covered>,
    values: &mut Vec<Value>,
) -> Vec<&'a Block> {
    let mut broken = Vec::new();
    for block in blocks.iter().filter(|block| block.content.is_none()) {
        let covered = streams.entry((block.slot, block.generation)).or_default();
        if !covered.holds(block.from, block.to()) {
            values.extend(block.saved.iter().cloned());
            broken.push(block);
        }
    }
    broken
}

/// Whether two blocks claim the same positions.
fn overlap(blocks: &[&Block]) -> bool {
    let same = |one: &Block, other: &Block| {
        let stream = (one.slot, one.generation) == (other.slot, other.generation);
        stream && one.from < other.to() && other.from < one.to()
    };
    let earlier = |index: usize, one: &Block| blocks[..index].iter().any(|other| same(one, other));
    blocks
        .iter()
        .enumerate()
        .any(|(index, one)| earlier(index, one))
}

fn take(content: &[u8], values: &mut Vec<Value>) {
    for line in content.split(|byte| *byte == b'\n') {
        values.extend(line::events(line));
    }
}
