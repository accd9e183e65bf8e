//! Spans of every kind that are open with args when recording ends.

use std::mem::ManuallyDrop;

use sa_recorder::{Args, AsyncSpan, AsyncSpanId, Level, Recorder, SpanId, async_span, begin, span};

/// Ids of requests as a step of many has them: too long for an entry, not for its thread.
fn ids() -> Vec<String> {
    (0..100).map(|at| format!("cmpl-{at:032}")).collect()
}

/// Opens spans, and ends as asked.
pub(crate) fn then(ending: &str) {
    if ending == "thread" {
        let open = || open("thread");
        std::thread::spawn(open).join().expect("the thread ends");
    } else {
        open(ending);
    }
    println!("open-args {ending}");
}

fn open(ending: &str) {
    drop(span!("host", "queued", request_id = "cmpl-1"));
    let mut step = span!("host", "step", request_id = "cmpl-1", batch = 42);
    drop(span!("host", "inner", request_id = "cmpl-other"));
    step.arg("tokens", 8);
    let mut named = Recorder::get().span(Level::E2e, "host", "named");
    named.arg("key", "\"a\"\n");
    let id = SpanId::begin(
        Level::E2e,
        "host",
        "a name that is longer than what an entry holds",
    );
    id.arg("first", 1);
    let many = span!("host", "many", ids = ids(), batch = 100);
    id.arg("late", 2); // while another one is open
    let prompt = "p".repeat(20_000);
    let long = span!(
        "host",
        "long",
        request_id = "cmpl-9",
        prompt = prompt,
        n = 1
    );
    begin(Level::E2e, "host", "bare");
    open_async(ending);
    let spans = (long, many, named, step);
    if ending == "thread" {
        let _left = ManuallyDrop::new(spans);
    }
}

fn open_async(ending: &str) {
    let mut request = async_span!("host", "request", request_id = "cmpl-2");
    request.arg("prompt_tokens", 12);
    let args = Args::new().with("request_id", "cmpl-3");
    let child = AsyncSpan::open_at(Level::E2e, "host", "child", Some(&request), None, &args);
    let by_id = AsyncSpanId::begin(Level::E2e, "host", "by id");
    by_id.arg("request_id", "cmpl-4");
    let mut long = async_span!("host", "long async", prompt = "p".repeat(2000));
    long.arg("request_id", "cmpl-5");
    let _left = ManuallyDrop::new((request, child, long));
    match ending {
        "kill" => {
            crate::work::die();
        }
        "finish" => Recorder::get().finish(),
        _ => {}
    }
}
