//! Ids that several requests use, moments in an order that cannot be, when a request arrived, and the outputs of steps.

use crate::golden::of_lines;
use crate::random_server::begin;
use format_oracle::writer::Process as FragmentProcess;
use serde_json::{Value, json};
use tempfile::TempDir;
use trace_merge::{Options, Progress, Runs};
use trace_report::{Quantiles, ReportOptions, RunReport, SeriesKind, read, screen};

/// An instant of a request, at a time in µs.
fn at(name: &str, pid: u64, ts: u64, id: &str) -> Value {
    json!({"ph": "i", "pid": pid, "tid": 1, "ts": ts, "s": "t", "name": name, "args": {"request_id": id}})
}

/// A span of a frontend, from one time to another in µs.
fn http(name: &str, (from, to): (u64, u64), id: &str) -> Value {
    json!({"ph": "X", "pid": 9, "tid": from + 1, "ts": from, "dur": to - from, "name": name, "args": {"request_id": id}})
}

/// A request of 10 ms with two tokens, 1 ms apart.
fn request(from: u64, id: &str) -> Vec<Value> {
    vec![
        http("http.request", (from, from + 10_000), id),
        at("request.queued", 10, from + 100, id),
        at("request.scheduled", 10, from + 300, id),
        at("request.token", 10, from + 5_000, id),
        at("request.token", 9, from + 5_100, id),
        at("request.token", 10, from + 6_000, id),
        at("request.token", 9, from + 6_100, id),
        at("request.finished", 10, from + 6_100, id),
    ]
}

fn cautions(report: &RunReport) -> Vec<&str> {
    let cautions = report.recorded.cautions.iter();
    cautions.map(String::as_str).collect()
}

/// A server whose clients all send the same `X-Request-Id`, one right after the other. Its engine records no HTTP.
#[test]
fn a_constant_id_is_as_many_requests_as_there_were() {
    let lines: Vec<Value> = (0..30)
        .flat_map(|nth| request(10_000 * nth, "same"))
        .collect();
    let of_engine = |line: &&Value| line["pid"] == 10;
    let engine: Vec<Value> = lines.iter().filter(of_engine).cloned().collect();
    // The last token is the frontend's, where there is one.
    for (lines, decode_ns) in [(lines, 1_100_000), (engine, 1_000_000)] {
        let found = of_lines(&lines);
        assert_eq!(found.requests.n, 30);
        assert_eq!(found.requests.queue.max_ns, 200_000);
        assert_eq!(found.requests.decode.max_ns, decode_ns);
        assert_eq!(cautions(&found), [""; 0]);
    }
}

/// Without ends between them, nobody can say which token is whose.
#[test]
fn requests_that_share_an_id_at_one_time_are_one_and_are_counted() {
    let mut lines: Vec<Value> = (0..4)
        .flat_map(|nth| request(4_000 * nth, "same"))
        .collect();
    lines.extend(request(100_000, "other"));
    let found = of_lines(&lines);
    assert_eq!(found.requests.n, 2);
    let [caution] = cautions(&found)[..] else {
        panic!("{:?}", found.recorded)
    };
    let words = "3 requests began under an id that another request was still using: each is counted as part of that request";
    assert_eq!(caution, words);
    assert!(screen::text(&found).contains(words));
}

/// Spans of one request: one in the other, of another process at the same time, and again in the queue after a preemption.
#[test]
fn the_spans_of_one_request_are_no_others() {
    let mut lines = request(0, "r");
    lines.push(http("http.stream_completion", (200, 9_900), "r"));
    let mut of_proxy = http("http.request", (20, 9_999), "r");
    of_proxy["pid"] = json!(8);
    lines.push(of_proxy);
    lines.push(at("request.preempted", 10, 5_200, "r"));
    lines.push(at("request.queued", 10, 5_300, "r"));
    let found = of_lines(&lines);
    assert_eq!(
        (found.requests.n, found.requests.e2e.max_ns),
        (1, 10_000_000)
    );
    assert_eq!(cautions(&found), [""; 0]);
}

/// The engine's clock is 1 ms ahead: what its queue says comes before the request does, also the second time.
#[test]
fn a_clock_that_is_ahead_does_not_split_a_request() {
    let shifted = |mut line: Value, ts: u64| {
        if line["pid"] == 10 {
            line["ts"] = json!(line["ts"].as_u64().unwrap() - ts);
        }
        line
    };
    let lines = (0..2).flat_map(|round| request(50_000 + 100_000 * round, "r"));
    let lines: Vec<Value> = lines.map(|line| shifted(line, 1_000)).collect();
    let found = of_lines(&lines);
    assert_eq!(found.requests.n, 2);
    for request in &found.request {
        let [queued_ns, arrival_ns] =
            [request.queued_ns(), request.arrival_ns()].map(Option::unwrap);
        assert_eq!(queued_ns - arrival_ns, -900_000);
        assert_eq!(request.e2e_ns(), Some(10_000_000));
    }
}

#[test]
fn the_same_id_in_another_run_is_another_request() {
    let folder = TempDir::new().unwrap();
    for (pid, run) in [(41, "one"), (42, "two"), (43, "three")] {
        let process = FragmentProcess {
            run: run.to_owned(),
            ..FragmentProcess::new(pid)
        };
        let on = process.main_thread();
        let mut fragment = process.fragment();
        fragment.line(&process.anchor(1_000_000));
        fragment.line(&on.span(2_000_000, 900_000, "http.request", r#""request_id":"same""#));
        fragment.line(&process.anchor(9_000_000));
        let path = folder.path().join(format!("trace.{pid}.jsonl"));
        std::fs::write(path, fragment.bytes).unwrap();
    }
    let options = Options {
        runs: Runs::All,
        ..Options::new([folder.path().to_owned()])
    };
    let found = read(&options, &ReportOptions::default(), &Progress::default()).unwrap();
    assert_eq!((found.requests.n, found.requests.ok), (3, 3));
    assert_eq!(cautions(&found), [""; 0]);
}

/// Prefill and decode are on two hosts, whose clocks are 1 ms apart.
#[test]
fn figures_between_moments_out_of_order_are_left_out() {
    let mut lines = request(0, "good");
    lines.extend([
        http("http.request", (20_000, 30_000), "bad"),
        at("request.queued", 10, 21_000, "bad"),
        at("request.scheduled", 11, 20_500, "bad"),
        at("request.token", 10, 25_000, "bad"),
        at("request.token", 9, 25_100, "bad"),
        at("request.token", 10, 26_000, "bad"),
        at("request.token", 9, 26_100, "bad"),
    ]);
    let found = of_lines(&lines);
    let requests = &found.requests;
    let told = (
        requests.out_of_order.requests,
        &requests.out_of_order.request_ids[..],
    );
    assert_eq!(told, (1, &["bad".to_owned()][..]));
    let ns: fn(&Quantiles) -> (u64, i64) = |of| (of.n, of.min_ns);
    assert_eq!(ns(&requests.queue), (1, 200_000));
    assert_eq!(ns(&requests.prefill), (2, 4_500_000));
    assert_eq!(
        (requests.ttft.n, requests.decode.n, requests.e2e.n),
        (2, 2, 2)
    );
    let text = screen::text(&found);
    let words = "1 request has moments out of order, as when clocks of hosts are apart: left out of the figures between them (bad)";
    assert!(text.contains(words), "{text}");
}

/// A busy event loop reads a request long after it reached the kernel.
#[test]
fn a_request_arrives_when_it_reaches_the_kernel() {
    let mut lines = request(20_000, "waited");
    lines.push(begin());
    lines[0]["args"]["waited_us"] = json!(8_300.25);
    let found = of_lines(&lines);
    let [one] = &found.request[..] else {
        panic!("{:?}", found.request)
    };
    assert_eq!(one.arrival_ns(), Some(20_000_000 - 8_300_250));
    let times = [
        one.ttft_ns(),
        one.application_ttft_ns(),
        one.e2e_ns(),
        one.application_e2e_ns(),
    ];
    assert_eq!(
        times,
        [13_400_250, 5_100_000, 18_300_250, 10_000_000].map(Some)
    );
    let parts = one.parts().unwrap();
    assert_eq!(parts[0], ("socket".to_owned(), 8_300_250));
    assert_eq!(parts.iter().map(|(_, ns)| ns).sum::<i64>(), 18_300_250);
    let text = screen::text(&found);
    assert!(text.contains("TTFT, application"), "{text}");
    let csv = screen::table_csv(&found, screen::Table::Request).unwrap();
    assert!(
        csv.contains("application_ttft_us") && csv.contains("13400.25"),
        "{csv}"
    );
    // If it is unknown, one figure is enough.
    let text = screen::text(&of_lines(&request(0, "r")));
    assert!(!text.contains("application"), "{text}");
}

/// The client has its answer before the application has cleaned up, which may take long on a busy event loop.
#[test]
fn issue_47_a_request_ends_with_the_last_part_of_its_answer() {
    let mut lines = request(20_000, "answered");
    lines.push(begin());
    lines[0]["args"]["waited_us"] = json!(2_000);
    lines[0]["args"]["answered_us"] = json!(11_500.5);
    let found = of_lines(&lines);
    let [one] = &found.request[..] else {
        panic!("{:?}", found.request)
    };
    let times = [one.e2e_ns(), one.application_e2e_ns()];
    assert_eq!(times, [11_500_500, 9_500_500].map(Some));
}

/// As vLLM counts them: from output to output of a request, by the engine's clock, however many tokens an output has.
#[test]
fn times_between_tokens_are_those_of_the_outputs_of_steps() {
    let token = |ts: u64| json!({"ph": "i", "pid": 9, "tid": 1, "ts": ts, "name": "request.token", "args": {"request_id": "r"}});
    let outputs = |ts: u64, args: Value| json!({"ph": "X", "pid": 9, "tid": 1, "ts": ts, "dur": 50, "name": "OutputProcessor.process_outputs", "args": args});
    let found = of_lines(&[
        http("http.request", (0, 90_000), "r"),
        outputs(
            1_000,
            json!({"request_numbers": [7, 8], "engine_ts_ns": 50_000_000}),
        ),
        outputs(
            5_000,
            json!({"request_numbers": [8], "engine_ts_ns": 53_000_000, "output_tokens_each": [4]}),
        ),
        // Late, and of another list of the same step.
        outputs(
            9_000,
            json!({"request_numbers": [7], "engine_ts_ns": 53_000_000}),
        ),
        outputs(
            9_500,
            json!({"request_numbers": [7, 9], "engine_ts_ns": 55_500_000, "output_tokens_each": [0, 3]}),
        ),
        outputs(9_900, json!({"outputs": 3, "tokens": 3})),
        // The engine recorded some of these tokens once more.
        token(2_000),
        token(3_000),
    ]);
    let itl = &found.requests.itl;
    assert_eq!((itl.n, itl.min_ns, itl.max_ns), (3, 2_500_000, 3_000_000));
    assert!((itl.mean_ns - 8_500_000.0 / 3.0).abs() < 1e-6);
    let tokens = found
        .timeline
        .series
        .iter()
        .find(|of| of.of == SeriesKind::OutputTokensPerS);
    let per_s: f64 = tokens.unwrap().values.iter().flatten().sum();
    let tokens = per_s * found.timeline.part_ns as f64 / 1e9;
    assert!((tokens - 10.0).abs() < 1e-6, "{tokens}");
}

/// Steps that were not recorded brought outputs, too. Another process recorded all of its steps.
#[test]
fn a_pause_in_recording_is_no_time_between_tokens() {
    let outputs = |pid: u32, ms: u64, mut args: Value| {
        args["engine_ts_ns"] = json!(ms * 1_000_000);
        json!({"ph": "X", "pid": pid, "tid": 1, "ts": 1_000 * ms, "dur": 50, "name": "OutputProcessor.process_outputs", "args": args})
    };
    let found = of_lines(&[
        http("http.request", (0, 900_000), "r"),
        outputs(9, 10, json!({"request_numbers": [7, 8]})),
        outputs(9, 12, json!({"request_numbers": [7, 8]})),
        // Nothing of the first step is known by number.
        outputs(9, 500, json!({"outputs": 1, "after_pause": true})),
        outputs(9, 503, json!({"request_numbers": [7]})),
        outputs(9, 506, json!({"request_numbers": [7, 8]})),
        outputs(5, 10, json!({"request_numbers": [7], "after_pause": false})),
        outputs(5, 110, json!({"request_numbers": [7]})),
    ]);
    let itl = &found.requests.itl;
    assert_eq!((itl.n, itl.min_ns, itl.max_ns), (4, 2_000_000, 100_000_000));
}
