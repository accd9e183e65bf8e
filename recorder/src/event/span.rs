//! Spans on the calling thread: a guard that ends at drop, begin/end for callers without guards,
//! and spans by id.

mod by_id;

use std::cell::Cell;

use crate::process::{mask, start};
use crate::ring::open_entry::EntryName;
use crate::sys::clock::{now_ns, thread_cpu_ns};
use crate::sys::memory::{copy_or_empty, reserve};
use crate::text::encode::Line;
use crate::text::name::write_name;
use crate::text::series;
use crate::text::site::Site;
use crate::text::value::{self, Args, TextGuarantee, Value};
use crate::thread::event_writer::{Body, Name};
use crate::thread::open_span::{OpenSpan, Piece};
use crate::thread::slot_writer::SlotWriter;
use crate::thread::thread_state::{self, ThreadState};
use sa_format::Level;

pub use by_id::SpanId;

/// A span of the calling thread, from its creation until it is dropped. Created by
/// [`span!`](crate::span!) or [`Recorder::span`](crate::Recorder::span). Does nothing while
/// recording is off.
#[derive(Debug)]
#[must_use = "a span ends when its guard is dropped"]
pub struct SpanGuard(Option<OpenSpan>);

/// Room in bytes for two times with their keys, which [`Line`] copies in blocks.
const CPU_TIME_BYTES: usize = 128;
/// Arg that marks a span during which recording was switched off.
const ACROSS_STOP: &str = "sa_across_stop";

impl SpanGuard {
    /// Returns a guard for a span that is not recorded. Calls on it do nothing.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn off() -> SpanGuard {
        SpanGuard(None)
    }

    /// Opens a span of a call site on the calling thread. `args` appends its arguments.
    #[doc(hidden)]
    #[inline(always)]
    pub fn open(site: &'static Site, args: impl FnOnce(&mut SiteArgs<'_>)) -> SpanGuard {
        let opened =
            thread_state::with(|thread, writer| OpenSpan::open(thread, writer, site, args));
        SpanGuard(opened.flatten())
    }

    /// Opens a span on the calling thread, with a name that is not known at the call site.
    pub(crate) fn open_named(level: Level, category: &str, name: &str) -> SpanGuard {
        if !mask::wants(level) {
            return SpanGuard::off();
        }
        let opened = thread_state::with(|thread, writer| {
            let wanted = mask::wants(level);
            wanted.then(|| OpenSpan::open_named(thread, writer, category, name))?
        });
        SpanGuard(opened.flatten())
    }

    /// Adds an argument to the span. This is possible until the span ends.
    pub fn arg(&mut self, key: &str, value: impl Value) {
        self.add(|text, first| value::push_after(text, first, key, &value));
    }

    /// Adds args to the span that are already JSON text: `"key":value,…`, without braces.
    #[doc(hidden)]
    pub fn raw(&mut self, args: &[u8]) {
        if !args.is_empty() {
            self.add(|text, first| value::raw_after(text, first, args));
        }
    }

    /// Lets `add` append args to the span. It gets the text, and true if it adds the span's first
    /// arg.
    fn add(&mut self, add: impl FnOnce(&mut Vec<u8>, bool)) {
        if let Some(open) = &mut self.0 {
            thread_state::with_same(open.thread, open.epoch, |writer| {
                writer.add_args(&mut open.depth, &mut open.args, add);
            });
        }
    }

    /// Keeps only the first `kept` bytes of the args for the span's line in the trace. Called when
    /// the span was just opened. The ring keeps the dropped ones until more args are added, so a
    /// reader finds them while the span is open and after a kill.
    #[doc(hidden)]
    pub fn truncate_line_args(&mut self, kept: usize) {
        let Some(open) = &mut self.0 else {
            return;
        };
        thread_state::with_same(open.thread, open.epoch, |writer| {
            writer.truncate_args(open.depth, &mut open.args, kept);
        });
    }

    /// Returns true if the span is being recorded. Otherwise costly arguments need not be computed.
    pub fn is_recording(&self) -> bool {
        self.0.is_some()
    }
}

impl SpanGuard {
    /// Ends the span at `end_ns`, a time in the past as returned by [`now_ns`].
    pub fn end_at(self, end_ns: u64) {
        self.end_with(end_ns, &[]);
    }

    /// Ends the span at `end_ns` like [`SpanGuard::end_at`], and adds `args` to it. They are
    /// already JSON text, as for [`SpanGuard::raw`].
    #[doc(hidden)]
    #[inline]
    pub fn end_with(mut self, end_ns: u64, args: &[u8]) {
        let Some(mut open) = self.0.take() else {
            return;
        };
        thread_state::with_same(open.thread, open.epoch, |writer| {
            if args.is_empty() || !SlotWriter::has_args(open.depth, open.args) {
                return open.close(writer, end_ns, args);
            }
            // The span ends now, so readers of the ring do not need its args.
            writer.extend_args(&mut open.depth, &mut open.args, |text, first| {
                value::raw_after(text, first, args);
            });
            open.close(writer, end_ns, &[]);
        });
    }
}

impl Drop for SpanGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            let end_ns = now_ns();
            thread_state::with_same(open.thread, open.epoch, |writer| {
                open.close(writer, end_ns, &[]);
            });
        }
    }
}

/// Receives the arguments of a call site, whose keys are constant texts.
#[derive(Debug)]
pub struct SiteArgs<'a> {
    text: &'a mut Vec<u8>,
    from: usize,
    /// True if all values so far are finite numbers.
    are_numbers: bool,
}

impl<'a> SiteArgs<'a> {
    /// Starts the args of a call site at the end of `text`.
    #[inline(always)]
    fn new(text: &'a mut Vec<u8>) -> SiteArgs<'a> {
        let from = text.len();
        SiteArgs {
            text,
            from,
            are_numbers: true,
        }
    }

    /// Appends an argument to the args of a call site. `key` is already encoded as `"key":`.
    #[inline(always)]
    pub fn add(&mut self, key: &'static str, value: &(impl Value + ?Sized)) {
        self.are_numbers &= value.guarantee() == TextGuarantee::Number;
        let first = self.text.len() == self.from;
        value::push_encoded(self.text, first, key, value);
    }

    /// Appends args to those of a call site that are already JSON text: `"key":value,…`, without
    /// braces.
    #[inline]
    pub fn raw(&mut self, args: &[u8]) {
        self.are_numbers = false; // not known unless they are checked
        let first = self.text.len() == self.from;
        value::raw_after(self.text, first, args);
    }

    /// Returns the range of the args in the text.
    #[inline(always)]
    fn piece(&self) -> Piece {
        Piece::from(self.from, self.text)
    }
}

/// Appends the arguments of a call site to a text. Returns their range in the text.
#[inline(always)]
pub(crate) fn site_args(text: &mut Vec<u8>, add: impl FnOnce(&mut SiteArgs<'_>)) -> Piece {
    let mut args = SiteArgs::new(text);
    add(&mut args);
    args.piece()
}

/// Appends the series of a call site's counter to a text: its arguments without values that a
/// counter cannot draw. Returns their range in the text.
#[inline(always)]
pub(crate) fn site_series(text: &mut Vec<u8>, add: impl FnOnce(&mut SiteArgs<'_>)) -> Piece {
    let mut args = SiteArgs::new(text);
    add(&mut args);
    if !args.are_numbers {
        series::keep_numbers(args.text, args.from);
    }
    args.piece()
}

impl OpenSpan {
    /// Opens a span of a call site on the calling thread. `args` appends its arguments. Returns
    /// `None` if its level is off.
    #[inline(always)]
    fn open(
        thread: &'static ThreadState,
        writer: &mut SlotWriter,
        site: &'static Site,
        args: impl FnOnce(&mut SiteArgs<'_>),
    ) -> Option<OpenSpan> {
        if !mask::wants(site.level()) {
            return None; // the first event of a process reads the environment above, so the level may be off
        }
        let args = site_args(&mut writer.text, args);
        Some(OpenSpan::begin(thread, writer, EntryName::Site(site), args))
    }

    /// Opens a span on the calling thread, with a name but without a call site. Returns `None` if
    /// there is not enough memory for the name, which is counted.
    fn open_named(
        thread: &'static ThreadState,
        writer: &mut SlotWriter,
        category: &str,
        name: &str,
    ) -> Option<OpenSpan> {
        let mut is_named = false;
        let piece = writer.add_text(|text| is_named = write_name(text, category, name));
        if !is_named {
            return None; // counted
        }
        let name = EntryName::Text(name);
        Some(OpenSpan::begin(thread, writer, name, piece))
    }

    /// Begins a span on the calling thread and shows it in the ring. `piece` is the part of the
    /// writer's text that was written last: the args if a site names the span, and its name and
    /// category otherwise.
    #[inline(always)]
    fn begin(
        thread: &'static ThreadState,
        writer: &mut SlotWriter,
        name: EntryName<'_>,
        piece: Piece,
    ) -> OpenSpan {
        let reads_cpu = writer.process.config.cpu;
        let cpu_start_ns = if reads_cpu { thread_cpu_ns() } else { 0 };
        let start_ns = now_ns();
        let depth = writer.push(name, piece, start_ns);
        let (site, name, args) = match name {
            EntryName::Site(site) => (Some(site), Piece::default(), piece),
            EntryName::Text(_) => (None, piece, Piece::default()),
        };
        OpenSpan {
            thread,
            epoch: thread.epoch(),
            site,
            start_ns,
            cpu_start_ns,
            depth,
            name,
            args,
        }
    }

    /// Ends the span and writes its line with `more_args`, or with the args in the writer's text if
    /// there are no others.
    #[inline(always)]
    fn close(&self, writer: &mut SlotWriter, end_ns: u64, more_args: &[u8]) {
        if !mask::stopped_since(self.start_ns) && writer.pop(self.depth) {
            self.write(writer, end_ns, more_args);
        } else {
            self.close_unordered(writer, end_ns, more_args);
        }
    }

    /// Ends the span in an unusual case: it is not the innermost one, it is deeper than the stack,
    /// it is above spans that ended before it, its args are not in the text, or recording was
    /// switched off while it was open.
    #[cold]
    #[inline(never)]
    fn close_unordered(&self, writer: &mut SlotWriter, end_ns: u64, more_args: &[u8]) {
        let pieces = [self.name, self.args].into_iter();
        let text_from = pieces
            .filter(|piece| piece.len > 0)
            .map(|piece| piece.from)
            .min()
            .unwrap_or(u32::MAX);
        let mut own_args = writer.remove_own_args(self.depth);
        if mask::stopped_since(self.start_ns) {
            let args = self.args_of_line(&writer.text, more_args);
            mark_stopped(own_args.get_or_insert_with(|| copy_or_empty(args)));
        }
        let free_from = writer.pop_any(self.depth, text_from);
        self.write(writer, end_ns, own_args.as_deref().unwrap_or(more_args));
        writer.clear_entry(self.depth);
        if let Some(from) = free_from {
            writer.text.truncate(from as usize);
        }
    }

    /// Writes the line of the span, and drops its name and args from the writer's text.
    #[inline(always)]
    fn write(&self, writer: &mut SlotWriter, end_ns: u64, more_args: &[u8]) {
        match self.site {
            Some(site) if self.cpu_start_ns == 0 => {
                let body = Body {
                    duration_ns: Some(self.duration_ns(end_ns)),
                    middle: b"",
                    name: Name::Site(site.text()),
                    args: self.args_of_line(&writer.text, more_args),
                };
                writer.events.write(b'X', self.start_ns, &body);
                writer.release(self.args);
            }
            _ => self.write_general(writer, end_ns, more_args),
        }
    }

    /// Returns the args for the line of the span: `more_args`, or the args in the writer's `text`
    /// if `more_args` is empty.
    #[inline(always)]
    fn args_of_line<'a>(&self, text: &'a [u8], more_args: &'a [u8]) -> &'a [u8] {
        match more_args {
            [] => text.get(self.args.range()).unwrap_or_default(),
            more_args => more_args,
        }
    }

    /// Writes the line of a span without a call site, or of one with the CPU time of its thread.
    #[inline(never)]
    fn write_general(&self, writer: &mut SlotWriter, end_ns: u64, more_args: &[u8]) {
        let named = || Name::Text(writer.text.get(self.name.range()).unwrap_or_default());
        let mut room = [0; CPU_TIME_BYTES];
        let body = Body {
            duration_ns: Some(self.duration_ns(end_ns)),
            middle: self.cpu_time(&mut room),
            name: self.site.map_or_else(named, |site| Name::Site(site.text())),
            args: self.args_of_line(&writer.text, more_args),
        };
        writer.events.write(b'X', self.start_ns, &body);
        writer.release(self.args);
        writer.release(self.name);
    }

    #[inline(always)]
    fn duration_ns(&self, end_ns: u64) -> u64 {
        end_ns.saturating_sub(self.start_ns)
    }

    /// Returns the fields of the span's line with its CPU time, `,"tts":…,"tdur":…`, or nothing if
    /// CPU time is not recorded. `room` is the buffer for them.
    fn cpu_time<'a>(&self, room: &'a mut [u8; CPU_TIME_BYTES]) -> &'a [u8] {
        if self.cpu_start_ns == 0 {
            return b"";
        }
        let cpu_ns = thread_cpu_ns().saturating_sub(self.cpu_start_ns);
        let mut line = Line::new(room);
        line.literal(b",\"tts\":");
        line.micros(self.cpu_start_ns);
        line.literal(b",\"tdur\":");
        line.micros(cpu_ns);
        let len = line.len();
        room.get(..len).unwrap_or_default()
    }
}

/// Adds the arg `sa_across_stop` to a span, which says that recording was off for a part of it.
pub(crate) fn mark_stopped(args: &mut Vec<u8>) {
    let first = args.is_empty();
    value::push_after(args, first, ACROSS_STOP, &true);
}

thread_local! {
    /// Number of open spans that were begun while recording was off. They are the innermost ones,
    /// above those that a writer remembers.
    static BEGUN_OFF: Cell<usize> = const { Cell::new(0) };
}

/// Begins a span on the calling thread that [`end`] ends, for callers without guards. The spans of
/// a thread nest.
pub fn begin(level: Level, category: &str, name: &str) {
    let remembered = if start::levels() == 0 {
        None
    } else {
        thread_state::with(|thread, writer| {
            // A span that is not recorded is remembered too, so that every `end` finds its `begin`.
            if !reserve(&mut writer.begun, BEGUN_OFF.get().saturating_add(1)) {
                return false;
            }
            let off = std::iter::repeat_with(|| None).take(BEGUN_OFF.take());
            writer.begun.extend(off);
            let wanted = mask::wants(level);
            let open = wanted.then(|| OpenSpan::open_named(thread, writer, category, name));
            writer.begun.push(open.flatten());
            true
        })
    };
    if remembered != Some(true) {
        BEGUN_OFF.set(BEGUN_OFF.get().saturating_add(1));
    }
}

/// Ends the innermost span that [`begin`] has begun on this thread, with these arguments. Does
/// nothing if there is no such span.
pub fn end(args: &Args) {
    if let Some(outer) = BEGUN_OFF.get().checked_sub(1) {
        return BEGUN_OFF.set(outer);
    }
    let end_ns = now_ns();
    thread_state::with_attached(|writer| {
        if let Some(Some(open)) = writer.begun.pop() {
            open.close(writer, end_ns, args.text());
        }
    });
}
