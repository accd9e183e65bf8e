//! Finds the device slices that are collectives, and the slices of several ranks that belong to one collective.
//!
//! In: name and args of a slice on a device. Out: a [`Collective`] with its kind and communicator. [`CollectiveCounts`] numbers the collectives of each rank.
//! Ranks run the collectives of a communicator in the same order, so the k-th slice of one rank belongs to the same collective as the k-th of another.

use crate::json::Members;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A kind of communication between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollectiveKind {
    /// Each rank gets the sum of all.
    AllReduce,
    /// Each rank gets the data of all.
    AllGather,
    /// Each rank gets its part of the sum.
    ReduceScatter,
    /// Each rank gets a part of the data of each.
    AllToAll,
    /// The ranks wait for each other.
    Barrier,
    /// Anything else, such as a broadcast, or a message from one rank to another.
    Other,
}

/// Parts of the names of collectives, in lower case and without punctuation. With `v`, ranks get parts of different sizes, so they do not end together.
const KINDS: [(&str, CollectiveKind); 8] = [
    ("reducescatterv", CollectiveKind::Other),
    ("allgatherv", CollectiveKind::Other),
    ("alltoallv", CollectiveKind::Other),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("allreduce", CollectiveKind::AllReduce),
    ("allgather", CollectiveKind::AllGather),
    ("alltoall", CollectiveKind::AllToAll),
    ("barrier", CollectiveKind::Barrier),
];

impl CollectiveKind {
    fn from_plain_name(plain: &str) -> CollectiveKind {
        let found = KINDS.iter().find(|(part, _)| plain.contains(part));
        found.map_or(CollectiveKind::Other, |(_, kind)| *kind)
    }

    /// Returns true if no rank can end the collective before all have begun it, so that all end it at about the same time.
    pub fn ends_together(self) -> bool {
        self != CollectiveKind::Other
    }
}

/// A communication between devices, as its slice on one device describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Kind of the communication.
    pub kind: CollectiveKind,
    /// Hash of the kind and the communicator, which is the same on all ranks. Never 0.
    pub group: u64,
}

/// Args that name the communicator: two from Kineto, and ours.
const COMMUNICATOR_ARGS: [&[u8]; 3] = [b"Process Group Name", b"Process Group Ranks", b"comm"];
/// Arg with the operation of an NCCL kernel. It takes precedence over the kernel's name.
const KIND_ARG: &[u8] = b"Collective name";

impl Collective {
    /// Returns the communication of a slice with this name, or `None` if it computes. `args` are its args as JSON.
    pub fn from_event(name: &str, args: &[u8]) -> Option<Collective> {
        if !is_communication(name) {
            return None;
        }
        let (mut operation, mut communicator) = (plain(without_numbers(name)), 0);
        for (key, value) in Members::new(args) {
            if key == KIND_ARG {
                operation = plain(&String::from_utf8_lossy(value));
            } else if COMMUNICATOR_ARGS.contains(&key) {
                communicator = xxh3_64_with_seed(value, xxh3_64_with_seed(key, communicator));
            }
        }
        let kind = CollectiveKind::from_plain_name(&operation);
        let kind_hash = match kind {
            CollectiveKind::Other => xxh3_64(operation.as_bytes()),
            kind => kind as u64,
        };
        let communicator_hash = match communicator {
            0 => xxh3_64(without_numbers(name).as_bytes()),
            communicator => communicator,
        };
        let group = communicator_hash.rotate_left(3) ^ kind_hash;
        Some(Collective {
            kind,
            group: group.max(1),
        })
    }
}

/// Returns true if a kernel with this name only moves data between devices. HCCL calls its kernels `hcom_allReduce_` and the like.
pub fn is_communication(name: &str) -> bool {
    const LIBRARIES: [&str; 3] = ["hcom", "hccl", "nccl"];
    const COLLECTIVES: [&str; 5] = [
        "allreduce",
        "allgather",
        "alltoall",
        "reducescatter",
        "broadcast",
    ];
    let plain = plain(name);
    LIBRARIES.iter().any(|library| plain.contains(library)) || COLLECTIVES.contains(&plain.as_str())
}

/// Returns the letters and digits of a name, in lower case.
fn plain(name: &str) -> String {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase()
}

/// Returns the name without the numbers of the call. HCCL writes `hcom_allReduce__952_17_1`, in which 952 is the communicator and stays.
fn without_numbers(name: &str) -> &str {
    let Some((call, numbers)) = name.split_once("__") else {
        return name;
    };
    let communicator = numbers.bytes().take_while(u8::is_ascii_digit).count();
    &name[..call.len() + 2 + communicator]
}

/// Identity of a collective, which is the same on all of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectiveKey {
    /// [`Collective::group`] of its slices.
    pub group: u64,
    /// Number of the collective in its group, from 1.
    pub nth: u32,
}

/// Maximum number of counts, one for each group of each rank.
const MAX_COUNTS: usize = 1 << 20;

/// Numbers the collectives of each rank. They have to be added in the order of their times.
#[derive(Debug, Default)]
pub struct CollectiveCounts(HashMap<(u64, u32), u32>);

impl CollectiveCounts {
    /// Returns the key of a rank's next collective of a group, or `None` if there are too many groups.
    pub fn next(&mut self, group: u64, rank: u32) -> Option<CollectiveKey> {
        let is_full = self.0.len() >= MAX_COUNTS;
        let nth = match self.0.entry((group, rank)) {
            Entry::Vacant(_) if is_full => return None,
            entry => entry.or_default(),
        };
        *nth = nth.saturating_add(1);
        Some(CollectiveKey { group, nth: *nth })
    }

    /// Returns the number of collectives of a group on a rank. If ranks have different numbers, it is unknown which collectives belong together.
    pub fn count(&self, group: u64, rank: u32) -> u32 {
        self.0.get(&(group, rank)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ascend's `BroadcastTo` and its fused kernels compute, so they are no communication.
    #[test]
    fn communication_is_recognized_by_name() {
        for case in include_str!("../tests/collectives.txt").lines() {
            let (kind, name) = case.split_once(' ').unwrap();
            let found = Collective::from_event(name, b"").map(|found| format!("{:?}", found.kind));
            assert_eq!(found.as_deref(), Some(kind), "{name}");
        }
        for name in "BroadcastTo AllGatherMatmul MatmulReduceScatter attention".split(' ') {
            assert_eq!(Collective::from_event(name, b""), None, "{name}");
        }
    }
}
