//! The links of all requests, which the second pass looks up by id.

use super::program::styles::Style;
use super::records::Link;
use trace_store::hashed_map::{HashedMap, HashedSet};

/// The links of all ids.
#[derive(Default)]
pub(super) struct LinkTable {
    /// The position of the link of each id.
    pub(super) by_key: HashedMap<u32>,
    pub(super) links: Vec<Link>,
}

impl LinkTable {
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

/// A worker's view of the links.
pub(crate) struct Lookup<'a> {
    links: &'a LinkTable,
    pub(super) flows: &'a ProgramFlows,
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
    /// The keys of the threads of flows that the program draws on several.
    pub(super) threads: HashedSet,
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
    pub(super) fn new(links: &'a LinkTable, flows: &'a ProgramFlows) -> Self {
        Lookup {
            links,
            flows,
            written: LinkedEvents::default(),
        }
    }

    /// Returns the link of an id, if it has one.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<&'a Link> {
        let position = self.links.by_key.get(&key)?;
        self.links.links.get(*position as usize)
    }
}
