//! The links of all requests, to be looked up by id in the second pass: in memory if they are few, else in mapped temporary files.

use super::buckets::{Buckets, first_behind};
use super::partition::Share;
use super::program::flow_threads::FlowThreads;
use super::program::styles::Style;
use super::records::Link;
use crate::fragment::file::Content;
use crate::store::sorter::{Record, Sorted};
use std::io;

/// Looked up again and again are the few requests that are served at a time.
const CACHED: usize = 1 << 10;

/// Links in the order of their keys, and where to look for them.
#[derive(Default)]
pub(super) struct Ordered {
    pub(super) links: Sorted<Link>,
    pub(super) buckets: Buckets,
    /// How many requests are numbered before the first of them.
    pub(super) before: u64,
}

/// The links of all ids.
pub(super) struct LinkTables {
    /// Those of ids that stand for themselves alone, share by share.
    single: Vec<Table>,
    /// The others.
    grouped: Table,
}

struct Table {
    links: TableLinks,
    buckets: Buckets,
    before: u64,
}

enum TableLinks {
    Memory(Vec<Link>),
    Mapped(Content),
}

impl LinkTables {
    pub(super) fn new(single: Vec<Ordered>, grouped: Ordered) -> io::Result<LinkTables> {
        Ok(LinkTables {
            single: single
                .into_iter()
                .map(Table::new)
                .collect::<Result<_, _>>()?,
            grouped: Table::new(grouped)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.grouped.links.len() == 0 && self.single.iter().all(|one| one.links.len() == 0)
    }

    fn find(&self, key: u64) -> Option<Link> {
        let share = Share::of(key, self.single.len());
        let single = self.single.get(share).and_then(|table| table.find(key));
        single.or_else(|| self.grouped.find(key))
    }
}

impl Table {
    fn new(ordered: Ordered) -> io::Result<Table> {
        let links = match ordered.links {
            Sorted::Memory(links) => TableLinks::Memory(links),
            Sorted::File { file, .. } => TableLinks::Mapped(Content::open(file)?),
        };
        Ok(Table {
            links,
            buckets: ordered.buckets,
            before: ordered.before,
        })
    }

    fn find(&self, key: u64) -> Option<Link> {
        let (range, guess) = self.buckets.place(key)?;
        let at = first_behind(range.clone(), guess, |at| self.links.get(at).key < key);
        let link = range.contains(&at).then(|| self.links.get(at))?;
        (link.key == key).then(|| Link {
            flow: self.before + link.flow,
            ..link
        })
    }
}

impl TableLinks {
    fn len(&self) -> usize {
        match self {
            TableLinks::Memory(links) => links.len(),
            TableLinks::Mapped(content) => content.bytes().len() / Link::BYTES,
        }
    }

    #[inline]
    fn get(&self, at: usize) -> Link {
        match self {
            TableLinks::Memory(links) => links[at],
            TableLinks::Mapped(content) => Link::load(&content.bytes()[at * Link::BYTES..]),
        }
    }
}

/// A worker's view of the tables.
pub(crate) struct Lookup<'a> {
    tables: &'a LinkTables,
    pub(super) flows: &'a ProgramFlows,
    cached: Vec<(u64, Option<Link>)>,
    /// Flow events written with it.
    pub(crate) written: LinkedEvents,
}

/// The flow events that the merge has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkedEvents {
    /// Events of the merge's own flows.
    pub(crate) linked: u64,
    /// Events that were added to flows of the program.
    pub(crate) joined: u64,
}

impl std::ops::AddAssign for LinkedEvents {
    fn add_assign(&mut self, more: LinkedEvents) {
        self.linked += more.linked;
        self.joined += more.joined;
    }
}

/// The known facts about the flows that the program draws.
pub(super) struct ProgramFlows {
    pub(super) threads: FlowThreads,
    /// The members of each style.
    pub(super) styles: Vec<Vec<u8>>,
    /// True if arrows of the merge lead to the start of any.
    pub(super) has_leads: bool,
}

impl ProgramFlows {
    /// Returns the members `"name":…,"cat":…` of a style.
    pub(super) fn style(&self, style: Style) -> &[u8] {
        self.styles
            .get(style.0 as usize)
            .map_or(br#""name":"""#, Vec::as_slice)
    }
}

impl<'a> Lookup<'a> {
    pub(super) fn new(tables: &'a LinkTables, flows: &'a ProgramFlows) -> Self {
        // No place of the cache may hold a wrong answer: 1 belongs to another place than 0.
        let mut cached = vec![(0, None); CACHED];
        cached[0] = (1, None);
        Lookup {
            tables,
            flows,
            cached,
            written: LinkedEvents::default(),
        }
    }

    /// How an id is linked, if it is.
    #[inline]
    pub(super) fn find(&mut self, key: u64) -> Option<Link> {
        let place = place(key);
        let (known, link) = self.cached[place];
        if known == key {
            return link;
        }
        let link = self.tables.find(key);
        self.cached[place] = (key, link);
        link
    }
}

/// Where a key is in the cache.
#[inline]
fn place(key: u64) -> usize {
    usize::try_from(key % CACHED as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::records::EventPlace;
    use crate::store::sorter::Sorter;
    use xxhash_rust::xxh3::xxh3_64;

    fn key(number: u64) -> u64 {
        match number {
            0 => 0,
            1 => u64::MAX,
            number => xxh3_64(&number.to_le_bytes()),
        }
    }

    /// Links of keys with the same first bits, and whether they have to lie in a file.
    fn ordered(keys: impl Iterator<Item = u64>, in_file: bool, skipped: u32) -> Ordered {
        let folders = [std::env::temp_dir()];
        let mut sorter = Sorter::in_any(&folders, if in_file { 256 } else { 1 << 20 });
        let mut buckets = Buckets::new(1000, skipped);
        for key in keys {
            buckets.count(key);
            let (first, last) = (EventPlace(1), EventPlace(2));
            let flow = key >> 1;
            sorter
                .push(Link {
                    key,
                    flow,
                    first,
                    last,
                    own: None,
                })
                .unwrap();
        }
        buckets.finish();
        Ordered {
            links: sorter.finish().unwrap(),
            buckets,
            before: 7,
        }
    }

    #[test]
    fn every_key_is_found_in_memory_and_in_a_file() {
        for (in_file, len) in [(false, 0), (false, 3), (false, 3000), (true, 3000)] {
            let keys = (0..len).map(key);
            let (halves, grouped) = ([0, 1], (len..len + 500).map(key));
            let single = halves.map(|half| {
                let keys = keys.clone().filter(|key| key >> 63 == half);
                ordered(keys, in_file, 1)
            });
            let grouped = ordered(grouped, in_file, 0);
            let tables = LinkTables::new(single.into(), grouped).unwrap();
            assert!(!tables.is_empty());
            let is_mapped = |table: &Table| matches!(table.links, TableLinks::Mapped(_));
            assert_eq!(tables.single.iter().all(is_mapped), in_file);
            assert_eq!(is_mapped(&tables.grouped), in_file);
            let flows = ProgramFlows {
                threads: FlowThreads::new(Sorted::default()).unwrap(),
                styles: Vec::new(),
                has_leads: false,
            };
            let mut lookup = Lookup::new(&tables, &flows);
            for number in (0..len + 1000).chain(0..10) {
                let found = lookup.find(key(number)).map(|link| link.flow);
                let expected = (number < len + 500).then_some((key(number) >> 1) + 7);
                assert_eq!(found, expected, "{number}");
            }
        }
        let nothing = LinkTables::new(Vec::new(), Ordered::default()).unwrap();
        assert!(nothing.is_empty() && nothing.find(5).is_none());
    }
}
