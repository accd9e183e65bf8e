//! Virtual lanes: tids for spans that live across awaits or threads. There are as many lanes as
//! spans at peak concurrency, and none is reused while its span is open.
//!
//! Every open span has a lane of its own. A span that was opened inside another one is shown on
//! that span's lane when it ends, if that span is still open. Otherwise it is shown on its own
//! lane. The spans shown on a lane therefore nest, no matter which ends first. Three rules ensure
//! this: At most one other span is open directly inside a span. Everything that ended inside a span
//! ended before it. Nothing begins on a lane before the last span shown there has ended. The clocks
//! of two processors may violate this order, so such times are moved by the missing nanoseconds.

use std::io::Write;

use crate::ring::free_lanes::FreeLanes;
use crate::sys::memory::{count_out_of_memory, try_concat};
use crate::sys::shared::Shared;
use crate::text::site::Site;

/// Maximum nesting depth of spans on one lane. Viewers drop spans deeper than 512.
const MAX_DEPTH: u32 = 500;

/// The lanes of a process: which ones are in use, and how their spans nest.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    free: FreeLanes,
    /// Start of the most recent span. No two spans start at the same time, because the start
    /// identifies the span of a line.
    last_start_ns: u64,
}

/// Name of a lane in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LaneName {
    /// A name made from its number.
    #[default]
    Numbered,
    /// The name requested when a span was opened on the lane.
    Given(Shared<String>),
}

#[derive(Debug, Default)]
struct Lane {
    /// Lane of the parent span, while both are open.
    parent: Option<u32>,
    /// Lane of the child span.
    child: Option<u32>,
    /// Lane that the span is shown on if it ends now.
    shown_lane: u32,
    /// Nesting depth of the span on that lane.
    depth: u32,
    /// Time by which everything inside the span has begun or ended.
    until_ns: u64,
    /// Name that the lane should have.
    name: LaneName,
    /// Name that was last written to the trace.
    written_name: Option<LaneName>,
    /// True if both names are the same.
    is_name_written: bool,
    /// Site that names the lane's span, if the span's own text does not.
    site: Option<&'static Site>,
    own: OwnText,
}

/// Text of a span that neither the ring nor its site contains: its names if it has no site, and
/// then all its args.
#[derive(Debug, Default)]
pub(crate) struct OwnText {
    pub(crate) text: Vec<u8>,
    /// Length of the names in bytes.
    pub(crate) names: usize,
}

impl OwnText {
    /// Returns the span's name and category as `"name":"…","cat":"…"`, or nothing if a site names
    /// the span.
    pub(crate) fn names(&self) -> &[u8] {
        self.text.get(..self.names).unwrap_or_default()
    }

    pub(crate) fn args(&self) -> &[u8] {
        self.text.get(self.names..).unwrap_or_default()
    }
}

/// The end of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Lane that the span is shown on.
    pub(crate) shown_lane: u32,
    pub(crate) end_ns: u64,
    /// Site that names the span, if the span's own text does not.
    pub(crate) site: Option<&'static Site>,
    /// Lane of the span's child, which no longer has a parent.
    pub(crate) orphan: Option<u32>,
    /// True if the lane's name is in the trace. Otherwise [`Lanes::unwritten_name`] returns the
    /// name, which must be written before anything is shown on the lane.
    pub(crate) is_named: bool,
}

/// A lane that was allocated to a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) lane: u32,
    /// Lane of the parent span.
    pub(crate) parent: Option<u32>,
    /// Same as [`Ended::is_named`].
    pub(crate) is_named: bool,
}

/// Suffix of a lane's given name, so that it is not mistaken for a thread's name. The default name
/// is `async` and a number.
const MARK: &str = " (async)";

/// Room for a lane's name made from its number.
pub(crate) type NumberRoom = [u8; 24];

impl LaneName {
    /// Creates the name of a lane from the one that the program requested, with a suffix that marks
    /// it as a lane's. If there is not enough memory, counts that and returns a name made from the
    /// lane's number.
    fn new(name: &str) -> LaneName {
        let marked = try_concat([name, MARK]).and_then(Shared::new);
        if marked.is_err() {
            count_out_of_memory();
        }
        marked.map_or(LaneName::Numbered, LaneName::Given)
    }

    /// Returns the name of lane `lane` as text. `room` is a buffer for a name made from the lane's
    /// number.
    pub(crate) fn text<'a>(&'a self, lane: u32, room: &'a mut NumberRoom) -> &'a str {
        match self {
            LaneName::Numbered => {
                let mut rest = room.as_mut_slice();
                let _ = write!(rest, "async {lane}"); // the buffer is large enough
                let rest = rest.len();
                let text = room.get(..room.len() - rest).unwrap_or_default();
                std::str::from_utf8(text).unwrap_or_default()
            }
            LaneName::Given(name) => name,
        }
    }

    fn matches(&self, name: Option<&str>) -> bool {
        match self {
            LaneName::Numbered => name.is_none(),
            LaneName::Given(own) => name == own.strip_suffix(MARK),
        }
    }
}

impl Lane {
    #[cold]
    fn rename(&mut self, name: LaneName) {
        self.is_name_written = self.written_name.as_ref() == Some(&name);
        self.name = name;
    }

    /// Returns the lane's name if the trace does not contain it yet, and marks it as written. The
    /// caller must then write it.
    fn name_to_write(&mut self) -> Option<LaneName> {
        if std::mem::replace(&mut self.is_name_written, true) {
            return None;
        }
        self.written_name = Some(self.name.clone());
        self.written_name.clone()
    }
}

impl Lanes {
    /// Allocates the lowest free lane to a new async span. The span becomes the child of the open
    /// span of lane `parent`. It becomes independent if there is no parent, if the parent already
    /// has a child, or if too many spans are nested. Then its lane gets the name `name`. A lane
    /// that was freed can be reused once `is_vacant` returns true for it. Returns `None` if there
    /// is not enough memory for another lane.
    #[inline(always)]
    pub(crate) fn allocate(
        &mut self,
        parent: Option<u32>,
        name: Option<&str>,
        is_vacant: impl Fn(u32) -> bool,
    ) -> Option<Allocated> {
        let name = name.filter(|name| !name.is_empty());
        let lane = match self.free.allocate(is_vacant) {
            Some(lane) => lane,
            None => self.add()?,
        };
        let parent = parent.filter(|parent| self.can_nest_in(*parent));
        let mut is_named = true; // its lane may never be shown
        if let Some(outer) = parent {
            self.nest(outer, lane);
        } else {
            let own = self.at(lane);
            (own.parent, own.shown_lane, own.depth) = (None, lane, 0);
            if !own.name.matches(name) {
                own.rename(name.map_or(LaneName::Numbered, LaneName::new));
            }
            is_named = own.is_name_written;
        }
        Some(Allocated {
            lane,
            parent,
            is_named,
        })
    }

    /// Makes the span of `lane` a child of the span of lane `outer`. It is then shown on the same
    /// lane of the trace as its parent.
    #[inline]
    fn nest(&mut self, outer: u32, lane: u32) {
        let outer_lane = self.at(outer);
        outer_lane.child = Some(lane);
        let (shown_lane, depth) = (outer_lane.shown_lane, outer_lane.depth);
        let own = self.at(lane);
        (own.parent, own.shown_lane, own.depth) = (Some(outer), shown_lane, depth + 1);
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
        self.free.reserve(lane).ok()?; // so that freeing it needs no memory
        self.lanes.push(Lane::default());
        Some(lane)
    }

    fn can_nest_in(&self, parent: u32) -> bool {
        let parent = self.lanes.get(parent as usize);
        parent.is_some_and(|parent| parent.child.is_none() && parent.depth < MAX_DEPTH)
    }

    /// Begins the async span that has allocated this lane (a virtual thread), and returns its start
    /// in ns. This is `now_ns`, or slightly later if the spans on its lane would not nest
    /// otherwise, or if another span began at that time.
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

    /// Ends the async span that has this lane (a virtual thread) at `now_ns`, or slightly later if
    /// the spans on its lane would not nest otherwise. The lane stays in use until
    /// [`Lanes::release`].
    #[inline(always)]
    pub(crate) fn end(&mut self, lane: u32, now_ns: u64) -> Ended {
        let orphan = self.at(lane).child.take();
        let of_orphans = orphan.map_or(0, |orphan| self.detach(orphan));
        let own = self.at(lane);
        own.until_ns = own.until_ns.max(now_ns).max(of_orphans);
        let (end_ns, shown_lane, site) = (own.until_ns, own.shown_lane, own.site);
        let parent = own.parent.take();
        let is_named = shown_lane != lane || own.is_name_written;
        if let Some(parent) = parent {
            let parent = self.at(parent);
            parent.child = None;
            parent.until_ns = parent.until_ns.max(end_ns);
        }
        Ended {
            shown_lane,
            end_ns,
            site,
            orphan,
            is_named,
        }
    }

    /// Makes the span of lane `first` independent of its parent, which ends. From now on, the span
    /// and those inside it are shown on lane `first`. Returns the latest time in ns at which one of
    /// them has begun or ended.
    fn detach(&mut self, first: u32) -> u64 {
        self.at(first).parent = None;
        let (mut next, mut until_ns) = (Some(first), 0);
        while let Some(lane) = next {
            let lane = self.at(lane);
            lane.shown_lane = first;
            until_ns = until_ns.max(lane.until_ns);
            next = lane.child;
        }
        until_ns
    }

    /// Returns the lane of the trace on which the open span of `lane` would be shown if it ended
    /// now: its own lane, or that of a span that contains it.
    pub(crate) fn shown_lane(&self, lane: u32) -> u32 {
        self.lanes
            .get(lane as usize)
            .map_or(lane, |lane| lane.shown_lane)
    }

    /// Returns the lane on which the span of `lane` is shown, for an event that lasts from
    /// `start_ns` until now. Returns `None` if the event would overlap another span: one that is
    /// open inside the span of `lane`, or has ended there since `start_ns`. For an event without a
    /// duration, `start_ns` is `u64::MAX`, and the event always fits.
    pub(crate) fn shown_lane_since(&self, lane: u32, start_ns: u64) -> Option<u32> {
        let lane = self.lanes.get(lane as usize)?;
        let is_free = start_ns == u64::MAX || lane.child.is_none() && lane.until_ns <= start_ns;
        is_free.then_some(lane.shown_lane)
    }

    /// Returns the name of a lane if the trace does not contain it yet, and marks it as written.
    /// The caller must then write it.
    #[cold]
    pub(crate) fn unwritten_name(&mut self, lane: u32) -> Option<LaneName> {
        self.lanes.get_mut(lane as usize)?.name_to_write()
    }

    /// Returns the text that a lane stores for its span because neither the ring nor a site
    /// contains it. A caller that moves it out without ending the span must put it back.
    pub(crate) fn own_text(&mut self, lane: u32) -> &mut OwnText {
        &mut self.at(lane).own
    }

    /// Frees a lane (a virtual thread) whose async span has ended, so that another span can use it.
    pub(crate) fn release(&mut self, lane: u32) {
        self.free.release(lane);
    }

    fn at(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }
}

#[cfg(test)]
mod tests;
