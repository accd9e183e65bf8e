//! Keys under which the times of slices are summed up.

use super::edge::EdgeKind;
use crate::table::{Activity, RowKind};
use std::collections::HashSet;
use trace_merge::collective::is_communication;
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Categories of spans in which a worker launches work (FORMAT.md §2).
const LAUNCHES: [&str; 5] = ["kernel", "graph", "comm", "model", "memcpy"];

/// Maximum number of threads or requests with separate keys. All further ones share their keys.
const GROUPS: usize = 10_000;

/// Process, thread or request for which a name is counted separately. `None` counts all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamePlace {
    pub(crate) process: Option<usize>,
    /// Number of a thread, or hash of a request.
    pub(crate) group: Option<u64>,
}

impl NamePlace {
    /// Returns a hash of the process and the group, as a seed for the hash of a key.
    fn hash(self) -> u64 {
        let part = |number: Option<u64>| number.map_or(0, |number| number.wrapping_add(1));
        let process = part(self.process.map(|process| process as u64));
        part(self.group).rotate_left(24) ^ process << 2
    }
}

/// A name with its category, for one place or for the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameKey {
    pub(crate) place: NamePlace,
    /// Name of the place's thread or request.
    pub(crate) group: Option<String>,
    /// Kind of track that its slices are on.
    pub(crate) row_kind: RowKind,
    pub(crate) category: String,
    pub(crate) name: String,
    /// True if a kernel with this name moves data between devices.
    pub(crate) is_communication: bool,
    /// True if a span with this key in a worker launches work.
    pub(crate) is_launch: bool,
    /// Activity of a process in a span with this key.
    pub(crate) activity: Option<Activity>,
    /// Work that the start of such a span hands over or receives.
    pub(crate) hand_over: Option<EdgeKind>,
    /// True if a span with this key may name the requests of its process.
    pub(crate) names_requests: bool,
}

/// All keys by number, in the order of their first use.
#[derive(Default)]
pub(crate) struct NameKeys {
    numbers: HashedMap<u32>,
    groups: HashSet<u64>,
    keys: Vec<NameKey>,
}

impl NameKeys {
    /// Returns the number of the key with this place, kind of track, category and name. If the key is new, it is added,
    /// and `group` is called for the name of its thread or request. If there are too many threads or requests, further
    /// ones share their keys.
    pub(crate) fn number(
        &mut self,
        mut place: NamePlace,
        row_kind: RowKind,
        (category, name): (&str, &str),
        group: impl FnOnce() -> Option<String>,
    ) -> u32 {
        let has_room = |group: &u64| self.groups.contains(group) || self.groups.len() < GROUPS;
        place.group = place.group.filter(has_room);
        self.groups.extend(place.group);
        let seed = place.hash() ^ row_kind as u64;
        let category_seed = xxh3_64_with_seed(category.as_bytes(), seed);
        let hash = xxh3_64_with_seed(name.as_bytes(), category_seed);
        *self.numbers.entry(hash).or_insert_with(|| {
            self.keys.push(NameKey {
                place,
                group: place.group.and_then(|_| group()),
                row_kind,
                category: category.to_owned(),
                name: name.to_owned(),
                is_communication: is_communication(name),
                is_launch: LAUNCHES.contains(&category),
                activity: Activity::from_name(name),
                hand_over: hand_over(name),
                names_requests: names_requests(name),
            });
            u32::try_from(self.keys.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Adds the keys of a chunk. Returns the number of each of them in this list, in the chunk's order.
    pub(crate) fn merge(&mut self, others: NameKeys) -> Vec<u32> {
        let keys = others.keys.into_iter();
        keys.map(|key| {
            let name = (&*key.category, &*key.name);
            self.number(key.place, key.row_kind, name, || key.group)
        })
        .collect()
    }

    /// Returns a key by its number.
    pub(crate) fn get(&self, key: u32) -> &NameKey {
        &self.keys[key as usize]
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the keys in the order of their numbers.
    pub(crate) fn into_keys(self) -> Vec<NameKey> {
        self.keys
    }
}

/// Returns the work that a span with this name hands over to workers, or receives in a worker.
fn hand_over(name: &str) -> Option<EdgeKind> {
    let (owner, call) = name.rsplit_once(['.', ':']).unwrap_or(("", name));
    match (owner, call.trim_start()) {
        ("executor", "execute_model") | (_, "queue_worker_step") => Some(EdgeKind::StepHanded),
        ("executor", "sample_tokens") => Some(EdgeKind::SampleHanded),
        (_, "sample_tokens" | "sample") => Some(EdgeKind::SampleBegun),
        _ => None,
    }
}

/// Returns true if a span with this name may name the requests of its process: a step, a schedule, or a batch in
/// pypto-serving's steps.
pub(super) fn names_requests(name: &str) -> bool {
    const BATCHES: [&str; 2] = [".batch_prefill", ".batch_decode"];
    let is_activity = matches!(
        Activity::from_name(name),
        Some(Activity::Schedule | Activity::Step)
    );
    is_activity || BATCHES.iter().any(|batch| name.ends_with(batch))
}
