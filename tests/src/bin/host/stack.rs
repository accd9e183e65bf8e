//! Spans that do not end one after the other, or get their arguments late.

use crate::work::open;
use sa_recorder::async_span;
use std::mem::ManuallyDrop;

/// What the host's memory may grow by: far less than a million rounds would leave behind.
const GROWTH_KIB: u64 = 4096;

/// Runs rounds below an open span, and says whether memory stayed as it was. In each, a step gets arguments while a span in it is open, and spans end in
/// the order they began in.
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
    let before = status_kib("RssAnon:");
    (1..count).for_each(round);
    let bounded = status_kib("RssAnon:") < before + GROWTH_KIB;
    println!("rounds {count} bounded: {bounded}");
}

/// Opens `spans` spans within each other and `requests` async ones, ends some of each, and leaves the others open.
pub(crate) fn open_many(ending: &str, spans: u64, requests: u64) {
    let ending = ending.to_owned();
    let thread = std::thread::spawn(move || {
        let mut spans: Vec<_> = (0..spans).map(|index| open("deep", index)).collect();
        drop(spans.remove(1));
        drop(spans.remove(spans.len() - 2));
        drop(spans.pop());
        let request = |index| async_span!("host", "request", label = "async", index = index);
        let mut requests: Vec<_> = (0..requests).map(request).collect();
        drop(requests.pop());
        drop(requests.remove(0));
        let _left = ManuallyDrop::new((spans, requests));
        match ending.as_str() {
            "kill" => {
                crate::work::die();
            }
            "exit" => std::process::exit(crate::DONE.into()),
            _ => {}
        }
    });
    thread.join().expect("the thread ends");
}

/// A size from this process's status.
pub(crate) fn status_kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find(|line| line.starts_with(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.map_or(0, crate::number)
}
