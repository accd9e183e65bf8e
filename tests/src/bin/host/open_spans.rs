//! Spans of every kind that stay open, overlap, or receive arguments late.

use crate::work::open;
use e2e::host_support::status_kib;
use sa_recorder::{
    Args, AsyncSpan, AsyncSpanId, Level, Recorder, SpanGuard, SpanId, async_span, begin, end, span,
};
use std::mem::ManuallyDrop;

/// Maximum growth of the host's memory. A leak over a million rounds would be far larger.
const GROWTH_KIB: u64 = 4096;

/// Open spans of every kind with args.
pub(crate) struct OpenSpans {
    _guards: [SpanGuard; 4],
    id: SpanId,
    _lanes: [AsyncSpan; 3],
    lane_id: AsyncSpanId,
}

impl OpenSpans {
    /// Opens the spans, and ends others in between.
    pub(crate) fn open() -> OpenSpans {
        drop(span!("host", "queued", request_id = "cmpl-1"));
        let mut step = span!("host", "step", request_id = "cmpl-1", batch = 42);
        drop(span!("host", "inner", request_id = "cmpl-other"));
        step.arg("tokens", 8);
        let mut named = Recorder::get().span(Level::E2e, "host", "named");
        named.arg("key", "\"a\"\n");
        let long_name = "a name that is longer than what an entry holds";
        let id = SpanId::begin(Level::E2e, "host", long_name);
        id.arg("first", 1);
        // Request ids of a large step: too long for an open-span entry, but not for its thread.
        let ids: Vec<String> = (0..100).map(|at| format!("cmpl-{at:032}")).collect();
        let many = span!("host", "many", ids = ids, batch = 100);
        id.arg("late", 2); // while another span is open
        let text = "p".repeat(20_000);
        let long = span!("host", "long", request_id = "cmpl-9", prompt = text, n = 1);
        begin(Level::E2e, "host", "bare");
        let mut request = async_span!("host", "request", request_id = "cmpl-2");
        request.arg("prompt_tokens", 12);
        let args = Args::new().with("request_id", "cmpl-3");
        let child = AsyncSpan::open_at(Level::E2e, "host", "child", Some(&request), None, &args);
        let lane_id = AsyncSpanId::begin(Level::E2e, "host", "by id");
        lane_id.arg("request_id", "cmpl-4");
        let mut long_async = async_span!("host", "long async", prompt = "p".repeat(2000));
        long_async.arg("request_id", "cmpl-5");
        OpenSpans {
            _guards: [long, many, named, step],
            id,
            _lanes: [request, child, long_async],
            lane_id,
        }
    }

    /// Ends the spans with more args.
    pub(crate) fn end(self) {
        self.id.arg("late", 1);
        self.lane_id.arg("late", 1);
        end(&Args::new().with("late", 1));
        self.id.end();
        self.lane_id.end();
    }
}

/// Runs rounds below an open span and asserts that memory does not grow. In each round a step receives args while a span inside it is open, and three spans end in
/// the order in which they began.
pub(crate) fn rounds(count: u64) {
    let _serve = open("serve", 0);
    let round = |index| {
        let mut step = open("step", index);
        let mut kernel = open("kernel", index);
        step.arg("tokens", 8);
        kernel.arg("late", index);
        drop(kernel);
        step.arg("late", index);
        drop(step);
        let spans = [open("a", index), open("b", index), open("c", index)];
        spans.into_iter().for_each(drop);
    };
    round(0);
    let size = || status_kib(std::process::id(), "RssAnon:");
    let before = size();
    (1..count).for_each(round);
    let grown = size().saturating_sub(before);
    assert!(grown < GROWTH_KIB, "{grown} KiB");
}

/// Opens `spans` nested spans and `requests` async ones, ends some of each, and leaves the others open.
pub(crate) fn open_many(spans: u64, requests: u64) {
    let mut spans: Vec<_> = (0..spans).map(|index| open("deep", index)).collect();
    drop(spans.remove(1));
    drop(spans.remove(spans.len() - 2));
    drop(spans.pop());
    let request = |index| async_span!("host", "request", label = "async", index = index);
    let mut requests: Vec<_> = (0..requests).map(request).collect();
    drop(requests.pop());
    drop(requests.remove(0));
    let _left = ManuallyDrop::new((spans, requests));
}
