//! Ids that are unique among all hosts, even if each host writes its tables separately into the same folder.

use std::hash::Hasher;
use xxhash_rust::xxh3::Xxh3;

/// Number of bits of a host's id.
const HOST_BITS: u32 = 24;
/// Number of possible host ids.
pub(crate) const HOSTS: u32 = 1 << HOST_BITS;
/// Maximum number of processes in a trace. Their numbers have 16 bits.
pub(crate) const MAX_PROCESSES: usize = 1 << 16;

/// Id of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostId(pub(crate) u32);

impl HostId {
    /// Derives the id from the name and boot of a host.
    pub(crate) fn hashed(host: &str, boot_id: &str) -> HostId {
        let mut hasher = Xxh3::new();
        hasher.write(host.as_bytes());
        hasher.write(&[0]);
        hasher.write(boot_id.as_bytes());
        let hash = hasher.finish() % u64::from(HOSTS);
        HostId(u32::try_from(hash).unwrap_or(0))
    }

    /// Returns the id of a slice, or of any other table row, with this number in the trace.
    pub(crate) fn row(self, number: u64) -> i64 {
        i64::from(self.0) << 39 | number.cast_signed()
    }

    /// Returns the `upid` of the process with this number in the trace.
    pub(crate) fn process(self, number: usize) -> i64 {
        i64::from(self.0) << 16 | number.cast_signed() as i64
    }
}

/// Returns the `utid` or `track_id` of the thread or track with this number in its process.
pub(crate) fn in_process(upid: i64, number: usize) -> i64 {
    upid << 23 | number.cast_signed() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_different_hosts_do_not_overlap() {
        let (one, two) = (HostId(7), HostId(8));
        assert!(one.row((1 << 39) - 1) < two.row(0));
        assert!(one.process(MAX_PROCESSES - 1) < two.process(0));
        let last = HostId(HOSTS - 1);
        assert!(last.row((1 << 39) - 1) > 0);
        assert!(in_process(last.process(MAX_PROCESSES - 1), (1 << 23) - 1) > 0);
        assert_ne!(HostId::hashed("a", "b"), HostId::hashed("ab", ""));
    }
}
