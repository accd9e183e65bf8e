//! A host whose allocator fails once on the recording thread.

use sa_recorder::{
    Args, AsyncSpan, AsyncSpanId, FlowId, FlowPhase, Level, Recorder, SpanId, TrackProcess,
    async_span, begin, counter, end, flow, instant, span,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Refusing;

thread_local! {
    /// Number of allocations up to the one that fails, or 0 if none shall fail.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

fn is_refused() -> bool {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(1));
    left == 1
}

// SAFETY: delegates to the system allocator, and may also return null, as any allocator may.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if is_refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(old, layout, bytes) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(old, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Makes all kinds of recorder calls while allocation `number` fails (0: none). Reports whether that allocation was reached.
pub(crate) fn run(number: u64) -> String {
    instant!("host", "begun");
    let large = "x".repeat(15 << 10);
    let thread = std::thread::spawn(move || {
        LEFT.set(number);
        record(&large);
        let is_over = number > 0 && LEFT.get() == 0;
        let args = Args::new().with("until", "the thread ends");
        let _open = SpanId::begin_args(Level::E2e, "host", "left open", &args);
        is_over
    });
    let was_refused = thread.join().expect("no panic");
    if was_refused { "refused" } else { "all" }.to_owned()
}

/// Makes every kind of recorder call.
pub(crate) fn record(large: &str) {
    let recorder = Recorder::get();
    recorder.set_thread_name("starved");
    recorder.set_process_name("the process");
    spans(large);
    async_spans(large);
    by_id();
    let args = || Args::new().with("a", 1);
    recorder.instant(Level::E2e, "host", "named \u{202e}instant", &args());
    recorder.counter(Level::E2e, "named counter", &args());
    counter!("counter", of = 2);
    flow(FlowPhase::Start, "flow", FlowId::Process(7));
    recorder.metadata("process_labels", None, &Args::new().with("labels", "l"));
    let group = TrackProcess {
        name: "group",
        label: "label",
        sort_index: 1,
    };
    if let Some(track) = recorder.track(&group, "row") {
        track.instant(Level::E2e, "host", "on a track", 5_000_000, &args());
    }
}

fn spans(large: &str) {
    let mut outer = span!("host", "outer", text = "some", number = 3);
    let inner = Recorder::get().span(Level::E2e, "host", "named");
    outer.arg("late", "while another is open");
    drop(inner);
    begin(Level::E2e, "host", "begun span");
    end(&Args::new().with("a", 1));
    // These args exceed half a ring, so the span is written directly to the file.
    for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        outer.arg(key, large);
    }
}

fn async_spans(large: &str) {
    let args = Args::new().with("request", "r-1");
    let parent = AsyncSpan::open_at(Level::E2e, "host", "parent", None, Some("the row"), &args);
    let mut child = AsyncSpan::open_at(Level::E2e, "host", "child", Some(&parent), None, &args);
    let mut site = async_span!("host", "async site", text = "some");
    site.arg("large", large); // more than fits into the lane
    child.arg("late", "arg");
    drop(parent);
}

/// A name that is too long to be stored as a call site.
const LONG: &str = match std::str::from_utf8(&[b'n'; 1100]) {
    Ok(name) => name,
    Err(_) => "",
};

fn by_id() {
    for name in ["by id", LONG] {
        let span = SpanId::begin(Level::E2e, "host", name);
        span.arg("a", 1);
        let on_lane = AsyncSpanId::begin(Level::E2e, "host", name);
        on_lane.arg("a", 1);
        span.end();
        on_lane.end();
    }
}
