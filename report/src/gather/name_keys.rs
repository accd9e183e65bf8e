//! What slices are counted as.

use super::edge::EdgeKind;
use crate::table::{Activity, RowKind};
use std::collections::HashSet;
use trace_merge::collective::is_communication;
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Categories of the spans in which a worker launches work (FORMAT.md §2).
const LAUNCHES: [&str; 5] = ["kernel", "graph", "comm", "model", "memcpy"];

/// Threads or requests whose names are counted by themselves; those of further ones are together.
const GROUPS: usize = 10_000;

/// Of what a name is counted by itself; of `None` all are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamePlace {
    pub(crate) process: Option<usize>,
    /// A number of a thread, or the hash of a request.
    pub(crate) group: Option<u64>,
}

impl NamePlace {
    fn hash(self) -> u64 {
        let of = |number: Option<u64>| number.map_or(0, |number| number.wrapping_add(1));
        let process = of(self.process.map(|process| process as u64));
        of(self.group).rotate_left(24) ^ process << 2
    }
}

/// A name with its category, of one place or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameKey {
    pub(crate) place: NamePlace,
    /// What the place's thread or request is called.
    pub(crate) group: Option<String>,
    /// What its slices lie on.
    pub(crate) row_kind: RowKind,
    pub(crate) category: String,
    pub(crate) name: String,
    /// Whether a kernel of this name moves data between devices.
    pub(crate) is_communication: bool,
    /// Whether a span of it in a worker launches work.
    pub(crate) is_launch: bool,
    /// What a process does in a span of it.
    pub(crate) activity: Option<Activity>,
    /// Work that the begin of such a span hands over or takes up.
    pub(crate) hand_over: Option<EdgeKind>,
    /// Whether a span of it may tell which requests a process has.
    pub(crate) tells_requests: bool,
}

/// All of them, by number, in the order in which they came.
#[derive(Default)]
pub(crate) struct NameKeys {
    numbers: HashedMap<u32>,
    groups: HashSet<u64>,
    keys: Vec<NameKey>,
}

impl NameKeys {
    /// The number of a key, a new one if it is new.
    pub(crate) fn number(
        &mut self,
        mut place: NamePlace,
        row_kind: RowKind,
        (category, name): (&str, &str),
        group: impl FnOnce() -> Option<String>,
    ) -> u32 {
        let is_known = |of: &u64| self.groups.contains(of) || self.groups.len() < GROUPS;
        place.group = place.group.filter(is_known);
        self.groups.extend(place.group);
        let seed = place.hash() ^ row_kind as u64;
        let of_category = xxh3_64_with_seed(category.as_bytes(), seed);
        let hash = xxh3_64_with_seed(name.as_bytes(), of_category);
        *self.numbers.entry(hash).or_insert_with(|| {
            self.keys.push(NameKey {
                place,
                group: place.group.and_then(|_| group()),
                row_kind,
                category: category.to_owned(),
                name: name.to_owned(),
                is_communication: is_communication(name),
                is_launch: LAUNCHES.contains(&category),
                activity: Activity::of(name),
                hand_over: hand_over(name),
                tells_requests: tells_requests(name),
            });
            u32::try_from(self.keys.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// The numbers that keys of a chunk have here.
    pub(crate) fn take(&mut self, others: NameKeys) -> Vec<u32> {
        let keys = others.keys.into_iter();
        keys.map(|key| {
            let name = (&*key.category, &*key.name);
            self.number(key.place, key.row_kind, name, || key.group)
        })
        .collect()
    }

    /// A key by its number.
    pub(crate) fn of(&self, key: u32) -> &NameKey {
        &self.keys[key as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn into_keys(self) -> Vec<NameKey> {
        self.keys
    }
}

/// Returns what a span of this name hands over to workers, or takes up in one.
fn hand_over(name: &str) -> Option<EdgeKind> {
    let (owner, call) = name.rsplit_once(['.', ':']).unwrap_or(("", name));
    match (owner, call.trim_start()) {
        ("executor", "execute_model") | (_, "queue_worker_step") => Some(EdgeKind::StepHanded),
        ("executor", "sample_tokens") => Some(EdgeKind::SampleHanded),
        (_, "sample_tokens" | "sample") => Some(EdgeKind::SampleBegun),
        _ => None,
    }
}

/// Whether a span of this name may tell which requests a process has: those of steps and schedules, and pypto-serving's of the batches in them.
pub(super) fn tells_requests(name: &str) -> bool {
    const BATCHES: [&str; 2] = [".batch_prefill", ".batch_decode"];
    let of_activity = matches!(
        Activity::of(name),
        Some(Activity::Schedule | Activity::Step)
    );
    of_activity || BATCHES.iter().any(|batch| name.ends_with(batch))
}
