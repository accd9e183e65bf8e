//! The first part of an answer, where the time to first token ends: in a report, live, and in SQL.

use crate::golden::of_lines;
use crate::random_server::begin;
use crate::sql::Run;
use format_oracle::writer::Process as FragmentProcess;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tempfile::TempDir;
use trace_report::live::LiveReader;
use trace_report::screen;

const MS: u64 = 1_000;

/// Returns the HTTP span of a request, from one time to another in ms. It reached the kernel 2 ms before.
fn http((from, to): (u64, u64), id: &str) -> Value {
    json!({"ph": "X", "pid": 9, "tid": from + 1, "ts": from * MS, "dur": (to - from) * MS, "name": "http.request",
        "args": {"request_id": id, "waited_us": 2 * MS, "output_tokens": 11}})
}

/// Returns an instant of a request in a process, at a time in ms.
fn at(name: &str, pid: u64, ms: u64, id: &str) -> Value {
    json!({"ph": "i", "pid": pid, "tid": 1, "ts": ms * MS, "s": "t", "name": name, "args": {"request_ids": [id]}})
}

/// Returns requests of 200 ms, one each second. The frontend sees the first token after 50 ms, and sends the last part of the answer after 190 ms.
fn answers() -> Vec<Value> {
    let mut lines = vec![begin()];
    let chunks = [
        ("streamed", Some(80)),
        ("in one piece", Some(191)),
        ("not recorded", None),
        // An HTTP request with several prompts: the chunk belongs to another prompt.
        ("one of a batch", Some(40)),
        ("tokens unknown", Some(80)),
        ("tokens unknown, in one piece", Some(191)),
        ("under way", Some(80)),
        ("without HTTP", Some(80)),
        ("end unknown", Some(200)),
    ];
    for (from, (id, chunk)) in (1_000..).step_by(1_000).zip(chunks) {
        let mut span = http((from, from + 200), id);
        span["args"]["answered_us"] = json!(192 * MS);
        match id {
            "under way" => span["ph"] = json!("B"),
            "without HTTP" => span["name"] = json!("request"),
            "end unknown" => drop(span["args"].as_object_mut().unwrap().remove("answered_us")),
            _ => {}
        }
        lines.push(span);
        lines.push(at("request.queued", 10, from + 5, id));
        lines.push(at("request.scheduled", 10, from + 7, id));
        lines.push(at("request.first_token", 10, from + 48, id));
        lines.push(at("request.finished", 10, from + 180, id));
        if !id.starts_with("tokens unknown") {
            lines.push(at("request.first_token", 9, from + 50, id));
        }
        lines.extend(chunk.map(|ms| at("http.first_chunk", 9, from + ms, id)));
    }
    // A process without an HTTP span of the request, such as a proxy, does not count.
    lines.push(at("http.first_chunk", 8, 3_060, "not recorded"));
    lines
}

#[test]
fn issue_47_the_time_to_first_token_ends_when_the_first_part_left() {
    let found = of_lines(&answers());
    let times = found.request.iter().map(|one| {
        let ms = |ns: Option<i64>| ns.map(|ns| ns / 1_000_000);
        let times = [one.ttft_ns(), one.application_ttft_ns(), one.tpot_ns()];
        (one.request_id(), times.map(ms))
    });
    let times: BTreeMap<_, _> = times.collect();
    let expected = [
        ("streamed", [Some(82), Some(80), Some(14)]),
        ("in one piece", [Some(52), Some(50), Some(14)]),
        ("not recorded", [Some(52), Some(50), Some(14)]),
        ("one of a batch", [Some(52), Some(50), Some(14)]),
        ("tokens unknown", [Some(82), Some(80), None]),
        ("tokens unknown, in one piece", [None, None, None]),
        ("under way", [Some(82), Some(80), None]),
        ("without HTTP", [Some(50), Some(50), Some(15)]),
        ("end unknown", [Some(52), Some(50), Some(15)]),
    ];
    assert_eq!(times, BTreeMap::from(expected));
    assert_eq!(found.requests.out_of_order.requests, 0);
    let engine = found.requests.engine_ttft;
    assert_eq!((engine.min_ns, engine.max_ns), (43_000_000, 43_000_000));
    let text = screen::text(&found);
    let words = "from arrival in the kernel until the first part of the answer left";
    assert!(text.contains(words), "{text}");
    let json = serde_json::to_value(&found.request[0]).unwrap();
    assert_eq!(json["first_chunk_ns"], json!(1_080_000_000), "{json}");
    let csv = screen::table_csv(&found, screen::Table::Request).unwrap();
    assert!(csv.contains(",82000,80000,14000,"), "{csv}");
}

/// On a busy event loop, the first part of an answer may leave after the client has sent its next request under the same id.
#[test]
fn the_first_part_of_the_previous_request_does_not_count() {
    let mut lines = vec![begin(), http((100, 110), "same"), http((115, 160), "same")];
    lines[1]["args"]["answered_us"] = json!(11 * MS);
    lines.push(at("http.first_chunk", 9, 114, "same"));
    lines.push(at("http.first_chunk", 9, 140, "same"));
    let found = of_lines(&lines);
    assert_eq!(found.requests.n, 2);
    let times = found.request.iter().map(|one| one.application_ttft_ns());
    assert_eq!(times.collect::<Vec<_>>(), [None, Some(25_000_000)]);
    assert_eq!(found.requests.out_of_order.requests, 0);
}

/// One run, read in all three ways: a streamed answer after 80 ms, and one in one piece whose first token came after 50 ms.
#[test]
fn the_live_figure_is_that_of_the_report_and_of_sql() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("fragments")).unwrap();
    let process = FragmentProcess::new(41);
    let on = process.main_thread();
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(1_000_000));
    for (id, from, chunk) in [("streamed", 10_000_000, 80), ("whole", 500_000_000, 191)] {
        let ms = |ms: u64| from + ms * 1_000_000;
        let of = format!(r#""request_id":"{id}""#);
        let args = format!(r#"{of},"waited_us":0,"answered_us":190000"#);
        fragment.line(&on.span(ms(0), 200_000_000, "http.request", &args));
        fragment.line(&on.instant(ms(50), "request.first_token", &of));
        fragment.line(&on.instant(ms(chunk), "http.first_chunk", &of));
    }
    fragment.line(&process.anchor(900_000_000));
    let path = folder.path().join("fragments/trace.41.jsonl");
    std::fs::write(path, fragment.bytes).unwrap();

    let run = Run::of_run(folder.path());
    let report = run.report();
    let ttft = report.requests.ttft;
    assert_eq!(
        (ttft.n, ttft.min_ns, ttft.max_ns),
        (2, 50_000_000, 80_000_000)
    );
    let mut reader = LiveReader::new(&folder.path().join("fragments"));
    reader.poll();
    let live = reader.stats().requests.ttft;
    assert_eq!((live.n, live.sum_ns), (2, 130_000_000));
    run.check(&report);
}
