//! The gate. It is closed while anything is being captured into a graph: nothing may be put into a stream then, and nothing asked of an event.
//!
//! It learns of captures from hooks, and by asking each stream at its timed launches. It learns of their ends from hooks, and by asking again. Both
//! are needed, since either may come about behind the hooks' back.

use crate::runtime::{Context, DeviceRuntime, Graph, Stream};
use sa_recorder::now_ns;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) use updates::Updates;

mod updates;

/// A stream that is being captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capture {
    stream: Stream,
    context: Option<Context>,
    graph: Graph,
    /// When it was told of, if it has not been seen yet: a hook tells before the capture really begins.
    told_ns: Option<u64>,
}

/// What is new about a capture that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    Nothing,
    /// Another stream is captured into a graph that is known.
    Stream,
    /// The name of the graph. The gate was closed for it before.
    Graph,
    /// The capture: what was launched in it before was not looked at.
    Capture,
}

/// So long a capture that a hook has told of is taken for one that is about to begin.
const ABOUT_TO_BEGIN_NS: u64 = 1_000_000_000;

/// The gate.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: AtomicBool,
    captures: Mutex<Vec<Capture>>,
}

impl Gate {
    /// Whether something is being captured.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A stream is about to be captured.
    pub(crate) fn close_before(&self, stream: Stream, context: Option<Context>) {
        self.add(Capture {
            stream,
            context,
            graph: Graph(0),
            told_ns: Some(now_ns()),
        });
    }

    /// A stream is being captured.
    pub(crate) fn close(&self, stream: Stream, context: Option<Context>, graph: Graph) -> News {
        self.add(Capture {
            stream,
            context,
            graph,
            told_ns: None,
        })
    }

    fn add(&self, new: Capture) -> News {
        self.change(|captures| {
            let news = news_of(captures, new);
            match captures.iter_mut().find(|one| one.stream == new.stream) {
                Some(capture) => *capture = new,
                None => captures.push(new),
            }
            news
        })
    }

    /// The capture of a stream has ended; the graph that it was known by.
    pub(crate) fn open(&self, stream: Stream) -> Option<Graph> {
        self.change(|captures| {
            let at = captures
                .iter()
                .position(|capture| capture.stream == stream)?;
            Some(captures.swap_remove(at).graph)
        })
    }

    /// The graph that is being captured, if it is one alone.
    pub(crate) fn only_graph(&self) -> Option<Graph> {
        self.change(|captures| {
            let first = captures.first()?.graph;
            let alone = captures.iter().all(|capture| capture.graph == first);
            alone.then_some(first)
        })
    }

    /// Asks each stream whether it is still being captured; those of other contexts than `only`, if that is given, are not asked. The calling thread may have
    /// another context after it.
    pub(crate) fn ask_again(&self, runtime: &dyn DeviceRuntime, only: Option<Context>) {
        let now = now_ns();
        let is_asked = |capture: &Capture| {
            let has_begun = now.saturating_sub(capture.told_ns.unwrap_or(0)) > ABOUT_TO_BEGIN_NS;
            has_begun && (only.is_none() || capture.context == only)
        };
        let captures = self.change(|captures| captures.clone());
        for capture in captures.into_iter().filter(is_asked) {
            let entered = match (only, capture.context) {
                (None, Some(context)) => runtime.enter(context),
                _ => Ok(()),
            };
            match entered.and_then(|()| runtime.capture(capture.stream)) {
                Ok(Some(_)) => {}
                // It cannot be asked: only a hook knows.
                Err(code) if code == runtime.not_supported() => {}
                // It has ended, or the stream is gone.
                Ok(None) | Err(_) => {
                    self.open(capture.stream);
                }
            }
        }
    }

    /// Forgets captures in a context that is going.
    pub(crate) fn forget(&self, context: Option<Context>) {
        self.change(|captures| captures.retain(|capture| capture.context != context));
    }

    /// Forgets all captures.
    pub(crate) fn forget_all(&self) {
        self.change(Vec::clear);
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Capture>) -> T) -> T {
        let mut captures = self.captures.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut captures);
        self.closed.store(!captures.is_empty(), Ordering::Release);
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
        News::Graph // a hook has reported it, or it follows one whose end nobody saw
    } else {
        News::Capture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_when_the_last_capture_ends() {
        let gate = Gate::default();
        gate.close_before(Stream(1), None);
        gate.close(Stream(2), None, Graph(7));
        gate.close(Stream(1), None, Graph(7));
        assert_eq!(gate.only_graph(), Some(Graph(7)));
        assert_eq!(gate.open(Stream(1)), Some(Graph(7)));
        assert!(gate.is_closed());
        assert_eq!(gate.open(Stream(3)), None);
        gate.open(Stream(2));
        assert!(!gate.is_closed());
    }

    #[test]
    fn only_a_capture_that_nobody_reported_lacks_what_was_launched_before() {
        let gate = Gate::default();
        let close = |stream, graph| gate.close(Stream(stream), None, Graph(graph));
        gate.close_before(Stream(1), None);
        assert_eq!(close(1, 7), News::Graph);
        assert_eq!(close(1, 7), News::Nothing);
        assert_eq!(close(2, 7), News::Stream);
        assert_eq!(close(3, 8), News::Capture);
        assert_eq!(close(3, 9), News::Graph);
        (1..=3).for_each(|stream| assert!(gate.open(Stream(stream)).is_some()));
        gate.close_before(Stream(1), None);
        assert_eq!(close(2, 7), News::Graph, "it joins the one that begins");
        assert_eq!(close(1, 7), News::Stream);
        (1..=2).for_each(|stream| assert!(gate.open(Stream(stream)).is_some()));
        assert_eq!(close(1, 7), News::Capture);
    }
}
