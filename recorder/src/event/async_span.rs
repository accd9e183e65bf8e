//! Spans that live across awaits or threads, on virtual lanes.

mod by_id;
mod open;

use crate::event::span::{SiteArgs, site_args};
use crate::event::track::Track;
use crate::process::async_ids::OpenAsync;
use crate::process::mask;
use crate::process::state::Process;
use crate::ring::open_entry::EntryName;
use crate::sys::clock::now_ns;
use crate::text::name::{cut_name, write_name};
use crate::text::site::Site;
use crate::text::value::{self, Args, Value};
use crate::thread::thread_state;
use open::Placement;
use sa_format::LANE_BASE;
use sa_format::Level;
use sa_format::loss::Cause;

pub use by_id::AsyncSpanId;

/// A span that may be sent to other threads and held across awaits, until it is dropped. It is
/// shown inside another async span, or on its own lane, the lowest free one of its process.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct AsyncSpan(Option<OpenAsync>);

impl AsyncSpan {
    /// Returns an async span that is not recorded. Calls on it do nothing.
    #[doc(hidden)]
    pub const fn off() -> AsyncSpan {
        AsyncSpan(None)
    }

    /// Opens an async span of a call site. `args` appends its arguments.
    #[doc(hidden)]
    #[inline(always)]
    pub fn open(site: &'static Site, args: impl FnOnce(&mut SiteArgs<'_>)) -> AsyncSpan {
        AsyncSpan::open_with(site.level(), |process, text| {
            let piece = site_args(text, args);
            let args = text.get(piece.range()).unwrap_or_default();
            let name = (EntryName::Site(site), &b""[..]);
            let open = OpenAsync::open(process, name, args, &Placement::default());
            text.truncate(piece.range().start);
            open
        })
    }

    /// Opens an async span with a name that is not known at the call site, without a parent and
    /// without args.
    pub(crate) fn open_named(level: Level, category: &str, name: &str) -> AsyncSpan {
        AsyncSpan::open_at(level, category, name, None, None, &Args::default())
    }

    /// Opens an async span inside `parent`, or on a lane of its own with the name `lane` and the
    /// suffix ` (async)`. A lane is shown like a thread.
    ///
    /// The span is shown on the lane of `parent` if it ends before `parent` does. Otherwise it is
    /// shown on a lane of its own, which gets the name that the lane of `parent` had when the span
    /// began. The same happens while another span is open directly inside `parent`. The spans on a
    /// lane nest, no matter which ends first.
    ///
    /// A parent is ignored if it is not recorded, was opened by the parent process before a fork,
    /// or belongs to an earlier recording. A lane without a name is called `async` and a number. A
    /// lane that is used by spans with different names has the last of these names.
    pub fn open_at(
        level: Level,
        category: &str,
        name: &str,
        parent: Option<&AsyncSpan>,
        lane: Option<&str>,
        args: &Args,
    ) -> AsyncSpan {
        AsyncSpan::open_with(level, |process, _| {
            let placement = Placement::within(process, parent, lane);
            let site = Site::intern(level, category, name);
            let mut names = Vec::new();
            if site.is_none() && !write_name(&mut names, category, name) {
                return None; // counted
            }
            let name = site.map_or(EntryName::Text(name), EntryName::Site);
            OpenAsync::open(process, (name, &names), args.text(), &placement)
        })
    }

    /// Opens an async span like [`AsyncSpan::open_at`], with a call site from [`Site::intern`].
    /// `args` are JSON text without braces.
    #[doc(hidden)]
    pub fn open_site_at(
        site: &'static Site,
        parent: Option<&AsyncSpan>,
        lane: Option<&str>,
        args: &[u8],
    ) -> AsyncSpan {
        AsyncSpan::open_with(site.level(), |process, _| {
            let placement = Placement::within(process, parent, lane);
            OpenAsync::open(process, (EntryName::Site(site), b""), args, &placement)
        })
    }

    /// Returns a track for an event inside the span: the lane on which the span is currently shown.
    /// The event lasts from `start_ns`, a time as returned by [`now_ns`], until now. For an event
    /// without a duration, `start_ns` is `u64::MAX`. Returns `None` if the span is not recorded, or
    /// if the event would overlap another span on that lane.
    pub fn track_since(&self, start_ns: u64) -> Option<Track> {
        let open = self.0.as_ref()?;
        let process = open.process()?;
        let lanes = process.lanes.lock()?;
        let shown_lane = lanes.shown_lane_since(open.lane(), start_ns)?;
        Some(Track::from_tid(&process, LANE_BASE + shown_lane))
    }

    /// Calls `open` to open a span if its level is recorded. `open` gets a text to which it may
    /// append, but must remove what it has appended.
    #[inline(always)]
    fn open_with(
        level: Level,
        open: impl FnOnce(&Process, &mut Vec<u8>) -> Option<OpenAsync>,
    ) -> AsyncSpan {
        if !mask::wants(level) {
            return AsyncSpan(None);
        }
        // The first event of a process determines in between which levels are on.
        let opened = thread_state::with(|_, writer| {
            if mask::wants(level) {
                open(writer.process, &mut writer.text)
            } else {
                None
            }
        });
        AsyncSpan(opened.flatten())
    }

    /// Frees the span's lane without recording the span, because nobody can end it. Counts the span
    /// as lost for this cause.
    fn abandon(mut self, cause: Cause) {
        if let Some(open) = self.0.take()
            && let Some(process) = open.process()
        {
            open.abandon(&process, now_ns());
            process.lost.count(cause);
        }
    }

    /// Adds an argument to the span. This is possible until the span ends.
    pub fn arg(&mut self, key: &str, value: impl Value) {
        self.add(|args, first| value::push_after(args, first, key, &value));
    }

    /// Adds args to the span that are already JSON text: `"key":value,…`, without braces.
    #[doc(hidden)]
    pub fn raw(&mut self, args: &[u8]) {
        if !args.is_empty() {
            self.add(|text, first| value::raw_after(text, first, args));
        }
    }

    /// Lets `add` append args to the span. It gets the text, and true if it adds the first arg
    /// there.
    fn add(&mut self, add: impl FnOnce(&mut Vec<u8>, bool)) {
        if let Some(open) = &mut self.0 {
            open.add_args(add);
        }
    }

    /// Adds arguments to the span. This is possible until the span ends.
    pub fn args(&mut self, args: &Args) {
        self.raw(args.text());
    }

    /// Ends the span at `end_ns`, a time in the past as returned by [`now_ns`]. If a span inside it
    /// began or ended after that time, it ends later, so that the spans on its lane nest.
    pub fn end_at(mut self, end_ns: u64) {
        if let Some(open) = self.0.take()
            && open.is_live()
        {
            open.close(end_ns);
        }
    }

    /// Returns true if the span is being recorded. Otherwise calls on it do nothing.
    pub fn is_recording(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for AsyncSpan {
    fn drop(&mut self) {
        if let Some(open) = &self.0
            && open.is_live()
        {
            open.close(now_ns()); // in the child of a fork the span belongs to the parent
        }
    }
}

impl<'a> Placement<'a> {
    /// Returns where to show a new async span: inside `parent` if that is a span of the current
    /// recording, otherwise on a lane with the name `lane`.
    fn within(
        process: &Process,
        parent: Option<&AsyncSpan>,
        lane: Option<&'a str>,
    ) -> Placement<'a> {
        let open = parent
            .and_then(|parent| parent.0.as_ref())
            .filter(|open| open.epoch() == process.epoch()); // only a span of this recording
        Placement {
            parent: open.map(OpenAsync::lane),
            lane: lane.map(cut_name),
        }
    }
}
