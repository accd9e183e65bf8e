//! The links of all requests, to be looked up by id in the second pass: in memory if they are few, else in a mapped temporary file.

use super::row::Link;
use crate::fragment::Content;
use crate::sorter::{Record, Sorted};
use std::io;

/// Looked up again and again are the few requests that are served at a time.
const CACHED: usize = 1 << 10;

/// Links of a bucket, and most bits of a key that tell its bucket. Few links lie in one or two lines of the processor's cache, which is what a search waits for.
const BUCKET_LINKS: usize = 2;
const BUCKET_BITS: u32 = 18;
/// Of so few links each is looked at.
const FEW: usize = 8;

/// Links in the order of their keys.
pub(super) struct Table {
    links: Links,
    /// Where the links of each bucket begin; a bucket has the keys with the same first bits. Last, where all of them end.
    starts: Vec<usize>,
    /// How many bits of a key are not among those.
    shift: u32,
}

enum Links {
    Memory(Vec<Link>),
    Mapped(Content),
}

impl Table {
    pub(super) fn new(links: Sorted<Link>) -> io::Result<Table> {
        let links = match links {
            Sorted::Memory(links) => Links::Memory(links),
            Sorted::File { file, .. } => Links::Mapped(Content::open(file)?),
        };
        let len = links.len();
        let bits = (len / BUCKET_LINKS).checked_ilog2().unwrap_or(0);
        // At least one bit: a shift by all 64 is none.
        let bits = bits.clamp(1, BUCKET_BITS);
        let shift = u64::BITS - bits;
        let mut starts = vec![0; (1 << bits) + 1];
        for at in 0..len {
            starts[bucket(links.get(at).key, shift) + 1] = at + 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] = starts[bucket].max(starts[bucket - 1]);
        }
        Ok(Table {
            links,
            starts,
            shift,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.len() == 0
    }

    fn find(&self, key: u64) -> Option<Link> {
        let bucket = bucket(key, self.shift);
        let (mut low, end) = (self.starts[bucket], self.starts[bucket + 1]);
        let mut high = end;
        while high - low > FEW {
            let middle = low + (high - low) / 2;
            if self.links.get(middle).key < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low..end.min(high + 1))
            .map(|at| self.links.get(at))
            .find(|link| link.key == key)
    }
}

/// The bucket of a key: keys are spread evenly, so buckets are of about the same size.
#[inline]
fn bucket(key: u64, shift: u32) -> usize {
    usize::try_from(key >> shift).unwrap_or(0)
}

impl Links {
    fn len(&self) -> usize {
        match self {
            Links::Memory(links) => links.len(),
            Links::Mapped(content) => content.bytes().len() / Link::BYTES,
        }
    }

    #[inline]
    fn get(&self, at: usize) -> Link {
        match self {
            Links::Memory(links) => links[at],
            Links::Mapped(content) => Link::load(&content.bytes()[at * Link::BYTES..]),
        }
    }
}

/// A worker's view of the tables.
pub(crate) struct Lookup<'a> {
    tables: &'a [Table],
    cached: Vec<(u64, Option<Link>)>,
    /// Flow events written with it.
    pub(crate) written: u64,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(tables: &'a [Table]) -> Self {
        // No place of the cache may hold a wrong answer: 1 belongs to another place than 0.
        let mut cached = vec![(0, None); CACHED];
        cached[0] = (1, None);
        Lookup {
            tables,
            cached,
            written: 0,
        }
    }

    /// How an id is linked, if it is.
    #[inline]
    pub(super) fn find(&mut self, key: u64) -> Option<Link> {
        let place = usize::try_from(key % CACHED as u64).unwrap_or(0);
        let (known, link) = self.cached[place];
        if known == key {
            return link;
        }
        let link = self.tables.iter().find_map(|table| table.find(key));
        self.cached[place] = (key, link);
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::row::Place;
    use crate::sorter::Sorter;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn every_key_is_found_in_memory_and_in_a_file() {
        let folders = [std::env::temp_dir()];
        for (bytes, len) in [(1 << 20, 0), (1 << 20, 3), (1 << 20, 3000), (256, 3000)] {
            let mut sorter = Sorter::in_any(&folders, bytes);
            let key = |number: u64| match number {
                0 => 0,
                1 => u64::MAX,
                number => xxh3_64(&number.to_le_bytes()),
            };
            for flow in 0..len {
                let (first, last) = (Place(1), Place(2));
                let key = key(flow);
                sorter
                    .push(Link {
                        key,
                        flow,
                        first,
                        last,
                    })
                    .unwrap();
            }
            let table = Table::new(sorter.finish().unwrap()).unwrap();
            assert_eq!(matches!(table.links, Links::Mapped(_)), bytes == 256);
            assert_eq!(table.is_empty(), len == 0);
            let tables = [Table::new(Sorted::default()).unwrap(), table];
            let mut lookup = Lookup::new(&tables);
            for number in (0..len + 1000).chain(0..10) {
                let found = lookup.find(key(number)).map(|link| link.flow);
                assert_eq!(found, (number < len).then_some(number), "{number}");
            }
        }
    }
}
