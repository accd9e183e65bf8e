//! Spans of the calling thread by id, for callers that cannot hold a guard, such as C code.

use crate::process::mask;
use crate::sys::clock::now_ns;
use crate::sys::memory::reserve;
use crate::text::site::Site;
use crate::text::value::{self, Args, Value};
use crate::thread::open_span::OpenSpan;
use crate::thread::slot_writer::SlotWriter;
use crate::thread::thread_state;
use sa_format::Level;
use sa_format::loss::Cause;

/// Maximum number of open spans of one thread. A host that forgets to end them must not use memory
/// without limit.
const MAX_OPEN: usize = 4096;

/// A span of the thread that began it, as a number. A number that does not belong to an open span
/// of the calling thread is ignored. Ending a span twice, on another thread, or in the child of a
/// fork does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

/// Opens a span with `open` and adds it to the thread's spans that were begun by id. Returns its
/// id, or `None` if it is not recorded or too many spans are open.
#[inline(always)]
fn add_span(
    writer: &mut SlotWriter,
    level: Level,
    open: impl FnOnce(&mut SlotWriter) -> Option<OpenSpan>,
) -> Option<SpanId> {
    if writer.by_id.open.len() >= MAX_OPEN && mask::wants(level) {
        writer.process.lost.count(Cause::TooManyOpen);
        return None;
    }
    if !reserve(&mut writer.by_id.open, 1) {
        return None;
    }
    let open = open(writer)?;
    Some(SpanId(writer.by_id.add(open)))
}

impl SpanId {
    /// The id of no span. Calls with it do nothing.
    pub const NONE: SpanId = SpanId(0);

    /// Begins a span on the calling thread that [`SpanId::end`] ends. Returns [`SpanId::NONE`] if
    /// it is not recorded.
    #[inline]
    pub fn begin(level: Level, category: &str, name: &str) -> SpanId {
        SpanId::begin_args(level, category, name, &Args::default())
    }

    /// Begins a span with args on the calling thread, like [`SpanId::begin`].
    pub fn begin_args(level: Level, category: &str, name: &str, args: &Args) -> SpanId {
        if !mask::wants(level) {
            return SpanId::NONE;
        }
        let site = Site::intern(level, category, name);
        let begun = thread_state::with(|thread, writer| {
            add_span(writer, level, |writer| match site {
                Some(site) => OpenSpan::open(thread, writer, site, |text| text.raw(args.text())),
                None if mask::wants(level) => {
                    let mut open = OpenSpan::open_named(thread, writer, category, name)?;
                    let add =
                        |text: &mut Vec<u8>, first| value::raw_after(text, first, args.text());
                    writer.add_args(&mut open.depth, &mut open.args, add);
                    Some(open)
                }
                None => None,
            })
        });
        begun.flatten().unwrap_or_default()
    }

    /// Begins a span of a call site like [`SpanId::begin_args`]. Returns `None` if the calling
    /// thread has recorded nothing yet; the caller must then begin the span by name. Reaches no
    /// cancellation point. [`SpanId::arg`], [`SpanId::args`] and [`SpanId::end`] do not let a
    /// thread be cancelled either.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin_site(site: &'static Site, args: Option<&Args>) -> Option<SpanId> {
        let begun = thread_state::with_ready(|thread, writer| {
            add_span(writer, site.level(), |writer| {
                OpenSpan::open(thread, writer, site, |text| {
                    if let Some(args) = args {
                        text.raw(args.text());
                    }
                })
            })
        })?;
        Some(begun.flatten().unwrap_or_default())
    }

    /// Returns the id for a number from [`SpanId::number`], for callers such as C code.
    pub const fn from_number(number: u64) -> SpanId {
        SpanId(number)
    }

    /// Returns the id as a number, for callers such as C code; 0 for [`SpanId::NONE`].
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns true unless this is [`SpanId::NONE`]. The span was recorded when it began, but may
    /// have ended.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// Adds an argument to the span. This is possible until the span ends.
    pub fn arg(self, key: &str, value: impl Value) {
        self.add(|text, first| value::push_after(text, first, key, &value));
    }

    /// Adds an argument to the span. Its key was encoded by [`encode_key`](crate::encode_key).
    #[doc(hidden)]
    #[inline(always)]
    pub fn arg_with_encoded_key(self, key: &str, value: &impl Value) {
        self.add(|text, first| value::push_encoded(text, first, key, value));
    }

    /// Adds arguments to the span. This is possible until the span ends.
    pub fn args(self, args: &Args) {
        if !args.text().is_empty() {
            self.add(|text, first| value::raw_after(text, first, args.text()));
        }
    }

    #[inline]
    fn add(self, add: impl FnOnce(&mut Vec<u8>, bool)) {
        if self.is_some() {
            thread_state::with_attached(|writer| self.add_in(writer, add));
        }
    }

    fn add_in(self, writer: &mut SlotWriter, add: impl FnOnce(&mut Vec<u8>, bool)) {
        let Some(at) = writer.by_id.position(self.0) else {
            return;
        };
        let open = &writer.by_id.open[at].1;
        let (mut depth, mut args) = (open.depth, open.args);
        writer.add_args(&mut depth, &mut args, add);
        let open = &mut writer.by_id.open[at].1;
        (open.depth, open.args) = (depth, args);
    }

    /// Ends the span now. Does nothing if it is not an open span of the calling thread.
    #[inline]
    pub fn end(self) {
        if !self.is_some() {
            return;
        }
        let end_ns = now_ns();
        thread_state::with_attached(|writer| {
            if let Some(open) = writer.by_id.remove(self.0) {
                open.close(writer, end_ns, &[]);
            }
        });
    }
}
