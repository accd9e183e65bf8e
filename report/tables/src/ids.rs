//! Ids that are unique over hosts, also where hosts write into one folder alone.

use std::hash::Hasher;
use xxhash_rust::xxh3::Xxh3;

/// Bits of a host's id.
const HOST_BITS: u32 = 24;
/// Most ids of hosts.
pub(crate) const HOSTS: u32 = 1 << HOST_BITS;
/// Most processes of a trace: their numbers have 16 bits.
pub(crate) const PROCESSES: usize = 1 << 16;

/// The id of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostId(pub(crate) u32);

impl HostId {
    /// That of a host by its name and boot.
    pub(crate) fn of(host: &str, boot_id: &str) -> HostId {
        let mut hasher = Xxh3::new();
        hasher.write(host.as_bytes());
        hasher.write(&[0]);
        hasher.write(boot_id.as_bytes());
        let hash = hasher.finish() % u64::from(HOSTS);
        HostId(u32::try_from(hash).unwrap_or(0))
    }

    /// The id of a slice, or of any other row, by its number in the trace.
    pub(crate) fn row(self, number: u64) -> i64 {
        i64::from(self.0) << 39 | number.cast_signed()
    }

    /// The `upid` of a process by its number in the trace.
    pub(crate) fn process(self, number: usize) -> i64 {
        i64::from(self.0) << 16 | number.cast_signed() as i64
    }
}

/// The `utid` or `track_id` of something of a process, by its number there.
pub(crate) fn in_process(upid: i64, number: usize) -> i64 {
    upid << 23 | number.cast_signed() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_hosts_are_apart() {
        let (one, two) = (HostId(7), HostId(8));
        assert!(one.row((1 << 39) - 1) < two.row(0));
        assert!(one.process(PROCESSES - 1) < two.process(0));
        let last = HostId(HOSTS - 1);
        assert!(last.row((1 << 39) - 1) > 0);
        assert!(in_process(last.process(PROCESSES - 1), (1 << 23) - 1) > 0);
        assert_ne!(HostId::of("a", "b"), HostId::of("ab", ""));
    }
}
