//! Virtual lanes: tids for spans that live across awaits or threads. As many as the peak concurrency, never reused while open.
//!
//! Every open span has a lane of its own. A span that was opened within another one is shown on that one's row when it ends, as long as that one
//! is open too. Otherwise it is shown on its own lane. Spans of a row therefore nest, whichever ends first, by three rules. At most one other
//! span is open directly within a span. What ended within a span ended before it. Nothing begins on a row before the last span there ended.
//! Clocks of two processors may not keep this order. Such times are moved by the nanoseconds that are missing.

use std::io::Write;

use crate::ring::free_lanes::FreeLanes;
use crate::sys::memory::{joined, leave_out};
use crate::sys::shared::Shared;
use crate::text::site::Site;

/// Spans within each other on one row; a viewer drops those deeper than 512.
const MAX_DEPTH: u32 = 500;

/// The lanes of a process: which are taken, and how their spans lie in each other.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    free: FreeLanes,
    /// When the last span began. No two begin at the same time: the start tells which span a line is of.
    last_start_ns: u64,
}

/// What a lane is called in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LaneName {
    /// By its number.
    #[default]
    Numbered,
    /// As whoever opened a span on it asked.
    Given(Shared<String>),
}

#[derive(Debug, Default)]
struct Lane {
    /// The lane of the span that this one's lies in, while both are open.
    parent: Option<u32>,
    /// The lane of the span that lies in this one's.
    child: Option<u32>,
    /// The lane that the span is shown on if it ends now.
    row: u32,
    /// Spans on this row that this one lies in.
    depth: u32,
    /// Whatever began or ended within the span did so by then.
    until_ns: u64,
    /// What the row shall be called.
    name: LaneName,
    /// What it was called last.
    told: Option<LaneName>,
    /// Both are the same.
    is_told: bool,
    /// What names the span that has the lane, if its own text does not.
    site: Option<&'static Site>,
    own: OwnText,
}

/// The text of a span that the ring and its site do not have: its names where it has no site, and then all its args.
#[derive(Debug, Default)]
pub(crate) struct OwnText {
    pub(crate) text: Vec<u8>,
    /// Bytes of the names.
    pub(crate) names: usize,
}

impl OwnText {
    /// `"name":"…","cat":"…"`
    pub(crate) fn names(&self) -> &[u8] {
        self.text.get(..self.names).unwrap_or_default()
    }

    pub(crate) fn args(&self) -> &[u8] {
        self.text.get(self.names..).unwrap_or_default()
    }
}

/// Where a span ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// The lane it is shown on.
    pub(crate) row: u32,
    pub(crate) end_ns: u64,
    /// What names it, if its own text does not.
    pub(crate) site: Option<&'static Site>,
    /// The span that lay in it, which has no parent any more.
    pub(crate) orphan: Option<u32>,
    /// Whether the row has its name; else [`Lanes::untold`] has it, and it must be told before something is shown there.
    pub(crate) is_named: bool,
}

/// A lane that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) lane: u32,
    /// The lane of the span that the new one lies in.
    pub(crate) parent: Option<u32>,
    /// As of a span that ended.
    pub(crate) is_named: bool,
}

/// What the name of a lane ends with that is not `async` and its number, so that nobody takes it for a thread's.
const MARK: &str = " (async)";

/// Room for the name of a lane by its number.
pub(crate) type NumberRoom = [u8; 24];

impl LaneName {
    /// A given name, marked as a lane's; without memory for it the lane's number, and that is counted.
    fn new(name: &str) -> LaneName {
        let marked = joined([name, MARK]).and_then(Shared::new);
        if marked.is_err() {
            leave_out();
        }
        marked.map_or(LaneName::Numbered, LaneName::Given)
    }

    /// The name as text.
    pub(crate) fn text<'a>(&'a self, lane: u32, room: &'a mut NumberRoom) -> &'a str {
        match self {
            LaneName::Numbered => {
                let mut rest = room.as_mut_slice();
                let _ = write!(rest, "async {lane}"); // it has room
                let rest = rest.len();
                let text = room.get(..room.len() - rest).unwrap_or_default();
                std::str::from_utf8(text).unwrap_or_default()
            }
            LaneName::Given(name) => name,
        }
    }

    fn is(&self, name: Option<&str>) -> bool {
        match self {
            LaneName::Numbered => name.is_none(),
            LaneName::Given(own) => name == own.strip_suffix(MARK),
        }
    }
}

impl Lane {
    #[cold]
    fn rename(&mut self, name: LaneName) {
        self.is_told = self.told.as_ref() == Some(&name);
        self.name = name;
    }

    /// Gives the row its name; says so if that must be told.
    fn tell(&mut self) -> Option<LaneName> {
        if std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        self.told = Some(self.name.clone());
        self.told.clone()
    }
}

impl Lanes {
    /// Takes the lowest free lane for a span that lies in the one of `parent`, or on a row of its own of this name. It also has a row of its own
    /// where another span lies in that of `parent`, or too many lie in each other. A lane that was given back is free once it `is_vacant`. `None` without memory for one more.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        parent: Option<u32>,
        name: Option<&str>,
        is_vacant: impl Fn(u32) -> bool,
    ) -> Option<Taken> {
        let name = name.filter(|name| !name.is_empty());
        let lane = match self.free.take(is_vacant) {
            Some(lane) => lane,
            None => self.add()?,
        };
        let parent = parent.filter(|parent| self.has_room(*parent));
        let mut is_named = true; // it may never be shown
        if let Some(outer) = parent {
            self.put_within(outer, lane);
        } else {
            let own = self.at(lane);
            (own.parent, own.row, own.depth) = (None, lane, 0);
            if !own.name.is(name) {
                own.rename(name.map_or(LaneName::Numbered, LaneName::new));
            }
            is_named = own.is_told;
        }
        Some(Taken {
            lane,
            parent,
            is_named,
        })
    }

    /// Puts the span of a lane into that of another, whose row it shall be shown on.
    #[inline]
    fn put_within(&mut self, outer: u32, lane: u32) {
        let around = self.at(outer);
        around.child = Some(lane);
        let (row, depth) = (around.row, around.depth);
        let own = self.at(lane);
        (own.parent, own.row, own.depth) = (Some(outer), row, depth + 1);
        let name = &self.lanes[outer as usize].name;
        if *name != self.lanes[lane as usize].name {
            let name = name.clone();
            self.at(lane).rename(name);
        }
    }

    #[cold]
    fn add(&mut self) -> Option<u32> {
        let lane = u32::try_from(self.lanes.len()).ok()?;
        self.lanes.try_reserve(1).ok()?;
        self.free.reserve(lane).ok()?; // to give it back needs no memory
        self.lanes.push(Lane::default());
        Some(lane)
    }

    fn has_room(&self, parent: u32) -> bool {
        let parent = self.lanes.get(parent as usize);
        parent.is_some_and(|parent| parent.child.is_none() && parent.depth < MAX_DEPTH)
    }

    /// Begins the span of a taken lane now; says when that is.
    #[inline(always)]
    pub(crate) fn begin(&mut self, lane: u32, site: Option<&'static Site>, now_ns: u64) -> u64 {
        let parent = self.at(lane).parent;
        let of_parent = parent.map_or(0, |parent| self.at(parent).until_ns);
        let earliest = (self.last_start_ns + 1).max(of_parent);
        let own = self.at(lane);
        own.site = site;
        own.until_ns = now_ns.max(earliest).max(own.until_ns);
        self.last_start_ns = own.until_ns;
        self.last_start_ns
    }

    /// Ends the span of a lane now. The lane stays taken until it is given back.
    #[inline(always)]
    pub(crate) fn end(&mut self, lane: u32, now_ns: u64) -> Ended {
        let orphan = self.at(lane).child.take();
        let of_orphans = orphan.map_or(0, |orphan| self.cut_off(orphan));
        let own = self.at(lane);
        own.until_ns = own.until_ns.max(now_ns).max(of_orphans);
        let (end_ns, row, site) = (own.until_ns, own.row, own.site);
        let parent = own.parent.take();
        let is_named = row != lane || own.is_told;
        if let Some(parent) = parent {
            let parent = self.at(parent);
            parent.child = None;
            parent.until_ns = parent.until_ns.max(end_ns);
        }
        Ended {
            row,
            end_ns,
            site,
            orphan,
            is_named,
        }
    }

    /// Makes a span, and what lies in it, a row of its own; says until when something happened there.
    fn cut_off(&mut self, first: u32) -> u64 {
        self.at(first).parent = None;
        let (mut next, mut until_ns) = (Some(first), 0);
        while let Some(lane) = next {
            let lane = self.at(lane);
            lane.row = first;
            until_ns = until_ns.max(lane.until_ns);
            next = lane.child;
        }
        until_ns
    }

    /// Returns the row on which a lane's span is shown if it ends now.
    pub(crate) fn row_of(&self, lane: u32) -> u32 {
        self.lanes.get(lane as usize).map_or(lane, |lane| lane.row)
    }

    /// The row of a lane's span, unless something ended or is open there since `start_ns`. A point in time (`u64::MAX`) fits anywhere.
    pub(crate) fn row_since(&self, lane: u32, start_ns: u64) -> Option<u32> {
        let lane = self.lanes.get(lane as usize)?;
        let is_free = start_ns == u64::MAX || lane.child.is_none() && lane.until_ns <= start_ns;
        is_free.then_some(lane.row)
    }

    /// What the row of a lane must be called, if that is not told yet. Now it is.
    #[cold]
    pub(crate) fn untold(&mut self, lane: u32) -> Option<LaneName> {
        self.lanes.get_mut(lane as usize)?.tell()
    }

    /// The own text of a lane's span; who takes it, and does not end the span, puts it back.
    pub(crate) fn own_text(&mut self, lane: u32) -> &mut OwnText {
        &mut self.at(lane).own
    }

    /// Gives a lane back.
    pub(crate) fn give_back(&mut self, lane: u32) {
        self.free.give_back(lane);
    }

    fn at(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }
}

#[cfg(test)]
mod tests;
