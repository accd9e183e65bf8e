//! The gate: decides if our events may be put into streams now.
//!
//! It is closed while anything is being captured into a graph: then no event may be put into a stream or queried. It learns of captures from hooks, and by
//! querying each stream at its timed launches. It learns of their ends from hooks, and by querying again. Both are needed, because a capture may begin or
//! end without a hook.
//!
//! It also knows the streams in which a graph is being updated, and how many other profilers are running. A launch during an update changes the graph's
//! kernels and does not run, and an event is refused.

use crate::lock::lock;
use crate::runtime::ascend::{NOT_SUPPORTED, Runtime};
use crate::runtime::{Context, Graph, Stream};
use sa_recorder::now_ns;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Other profilers that have been started, even before a launch is recorded.
static PROFILERS: AtomicUsize = AtomicUsize::new(0);

/// Time for which a capture that a hook has reported counts as one that is about to begin.
const ABOUT_TO_BEGIN_NS: u64 = 1_000_000_000;

/// Counts another profiler, such as the vendor's, that was started. Returns true if it is the only one that is running.
pub(crate) fn profiler_started() -> bool {
    PROFILERS.fetch_add(1, Ordering::AcqRel) == 0
}

/// Counts another profiler that was stopped. Returns true if none is running any more.
pub(crate) fn profiler_stopped() -> bool {
    let one_less = |count: usize| count.checked_sub(1);
    let order = Ordering::Relaxed;
    PROFILERS.fetch_update(order, order, one_less) == Ok(1)
}

/// Returns true while another profiler, such as the vendor's, is running. Then none of our events may be in the streams.
pub(crate) fn is_profiled() -> bool {
    PROFILERS.load(Ordering::Acquire) > 0
}

/// A stream that is being captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capture {
    stream: Stream,
    context: Option<Context>,
    graph: Graph,
    /// Time at which a hook reported the capture, if no query has confirmed it yet: a hook reports it before it really begins.
    reported_ns: Option<u64>,
}

/// The news about a capture that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// No news.
    Nothing,
    /// Another stream is captured into a known graph.
    Stream,
    /// The name of the graph. The gate was closed for it before.
    Graph,
    /// The capture itself. Earlier launches in it were missed.
    Capture,
}

/// The gate.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// True if there are captures.
    closed: AtomicBool,
    /// True if there are updates.
    updating: AtomicBool,
    streams: Mutex<Streams>,
}

/// Streams into which no event may be put.
#[derive(Debug, Default)]
struct Streams {
    captures: Vec<Capture>,
    /// Open updates, in the order in which they began.
    updates: Vec<(Stream, Option<Context>)>,
}

impl Gate {
    /// Returns true if any stream is being captured into a graph. Then no event may be put into a stream.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes the gate because a stream is being captured into `graph`. Without a graph, the capture is about to begin. Returns what is new about the capture.
    pub(crate) fn close(
        &self,
        stream: Stream,
        context: Option<Context>,
        graph: Option<Graph>,
    ) -> News {
        let new = Capture {
            stream,
            context,
            graph: graph.unwrap_or(Graph(0)),
            reported_ns: graph.is_none().then(now_ns),
        };
        self.change(|Streams { captures, .. }| {
            let news = news_of(captures, new);
            match captures.iter_mut().find(|one| one.stream == new.stream) {
                Some(capture) => *capture = new,
                None => captures.push(new),
            }
            news
        })
    }

    /// Removes the capture of this stream, which has ended. The gate opens with the last one. Returns the captured graph, if a capture of this stream was
    /// known.
    pub(crate) fn open(&self, stream: Stream) -> Option<Graph> {
        self.change(|Streams { captures, .. }| {
            let at = captures.iter().position(|one| one.stream == stream)?;
            Some(captures.swap_remove(at).graph)
        })
    }

    /// Returns the graph into which streams are being captured, or `None` unless there is exactly one.
    pub(crate) fn only_graph(&self) -> Option<Graph> {
        self.change(|Streams { captures, .. }| {
            let first = captures.first()?.graph;
            let alone = captures.iter().all(|capture| capture.graph == first);
            alone.then_some(first)
        })
    }

    /// Asks the runtime about each stream that is being captured, or with `only` about each one of that context, and removes captures that have ended. Without
    /// `only`, the calling thread may have another context afterwards.
    pub(crate) fn query_again(&self, runtime: &Runtime, only: Option<Context>) {
        let now = now_ns();
        let is_asked = |capture: &Capture| {
            let has_begun =
                now.saturating_sub(capture.reported_ns.unwrap_or(0)) > ABOUT_TO_BEGIN_NS;
            has_begun && (only.is_none() || capture.context == only)
        };
        let captures = self.change(|streams| streams.captures.clone());
        for capture in captures.into_iter().filter(is_asked) {
            let entered = match (only, capture.context) {
                (None, Some(context)) => runtime.enter(context),
                _ => Ok(()),
            };
            match entered.and_then(|()| runtime.capture(capture.stream)) {
                // Without the runtime's function, only a hook can report the end.
                Ok(Some(_)) | Err(NOT_SUPPORTED) => {}
                // The capture has ended, or the stream is gone.
                Ok(None) | Err(_) => {
                    self.open(capture.stream);
                }
            }
        }
    }

    /// Records that launches into a stream are about to update a captured graph.
    pub(crate) fn begin_update(&self, stream: Stream, context: Option<Context>) {
        self.change(|streams| streams.updates.push((stream, context)));
    }

    /// Records that the update of a captured graph through this stream has ended, or did not begin.
    pub(crate) fn end_update(&self, stream: Stream) {
        self.change_updates(|updates| {
            // The last one that began: a second one that is refused in the meantime ends only itself.
            if let Some(at) = updates.iter().rposition(|(one, _)| *one == stream) {
                updates.remove(at);
            }
        });
    }

    /// Returns true if launches into this stream currently update a captured graph instead of running.
    pub(crate) fn is_updating(&self, stream: Stream) -> bool {
        let is_here = |updates: &mut Vec<_>| updates.iter().any(|(one, _)| *one == stream);
        self.change_updates(is_here).unwrap_or(false)
    }

    /// Removes all graph updates of a stream that no longer exists.
    pub(crate) fn forget_updates(&self, stream: Stream) {
        self.change_updates(|updates| updates.retain(|(one, _)| *one != stream));
    }

    /// Removes all captures and graph updates in the streams of a context that no longer exists.
    pub(crate) fn forget_context(&self, context: Option<Context>) {
        self.change(|Streams { captures, updates }| {
            captures.retain(|capture| capture.context != context);
            updates.retain(|(_, own)| *own != context);
        });
    }

    /// Removes the captures and graph updates of all streams, because the runtime is shut down.
    pub(crate) fn forget_all(&self) {
        self.change(|streams| *streams = Streams::default());
    }

    /// Calls `act` while the lock is held.
    #[cfg(test)]
    pub(crate) fn hold(&self, act: impl FnOnce()) {
        self.change(|_| act());
    }

    /// Changes the updates, if there are any. Costs one load if there are not.
    fn change_updates<T>(
        &self,
        change: impl FnOnce(&mut Vec<(Stream, Option<Context>)>) -> T,
    ) -> Option<T> {
        let is_updating = self.updating.load(Ordering::Acquire);
        is_updating.then(|| self.change(|streams| change(&mut streams.updates)))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Streams) -> T) -> T {
        let mut streams = lock(&self.streams);
        let result = change(&mut streams);
        let Streams { captures, updates } = &*streams;
        self.closed.store(!captures.is_empty(), Ordering::Release);
        self.updating.store(!updates.is_empty(), Ordering::Release);
        result
    }
}

fn news_of(captures: &[Capture], new: Capture) -> News {
    let has = |graph| captures.iter().any(|capture| capture.graph == graph);
    let is_known = |capture: &Capture| capture.stream == new.stream && capture.graph == new.graph;
    if captures.iter().any(is_known) {
        News::Nothing
    } else if has(new.graph) {
        News::Stream
    } else if has(Graph(0)) || captures.iter().any(|one| one.stream == new.stream) {
        News::Graph // a hook has reported it, or the end of the previous capture was missed
    } else {
        News::Capture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_capture_that_nobody_reported_lacks_what_was_launched_before() {
        let gate = Gate::default();
        let close = |stream, graph| gate.close(Stream(stream), None, Some(Graph(graph)));
        gate.close(Stream(1), None, None);
        assert_eq!(close(1, 7), News::Graph);
        assert_eq!(close(1, 7), News::Nothing);
        assert_eq!(close(2, 7), News::Stream);
        assert_eq!(close(3, 8), News::Capture);
        assert_eq!(close(3, 9), News::Graph);
        (1..=3).for_each(|stream| assert!(gate.open(Stream(stream)).is_some()));
        gate.close(Stream(1), None, None);
        assert_eq!(close(2, 7), News::Graph, "it joins the one that begins");
        assert_eq!(close(1, 7), News::Stream);
        (1..=2).for_each(|stream| assert!(gate.open(Stream(stream)).is_some()));
        assert_eq!(close(1, 7), News::Capture);
    }

    #[test]
    fn a_context_that_goes_takes_its_streams_with_it() {
        let gate = Gate::default();
        let begin = |stream| gate.begin_update(Stream(stream), Some(Context(stream)));
        let under_way = || [1, 2].map(|stream| gate.is_updating(Stream(stream)));
        begin(1);
        begin(2);
        gate.close(Stream(1), Some(Context(1)), None);
        gate.forget_context(Some(Context(1)));
        assert_eq!(under_way(), [false, true]);
        assert!(!gate.is_closed());
        gate.forget_all();
        assert_eq!(under_way(), [false, false]);
    }
}
