//! The page, and how a browser shows it.

use crate::idle::Server;
use crate::reports::{has_words, report_from_events};
use crate::tool::printed;
use serde_json::{Value, json};
use std::process::Command;
use trace_report::screen::{Table, table_csv};
use trace_report::{
    CostOf, Crash, EngineSettings, Finding, IdleCause, Pause, RequestStatus, RunPhase,
    RunPhaseKind, RunReport, ServingTime, StartUp, StartUpSpan, TraceRange, Verdict, VerdictRule,
    page,
};

const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/page");
/// A name that would end its script element and start another one.
const HOSTILE: &str = "</script><script>problems.push('ran')</script><img src=x onerror=alert(1)>";

/// Returns a server with 60 requests of 5 ms to 64 ms that arrive 1 ms apart, and the steps of two workers with one
/// device each.
pub(crate) fn served() -> Server {
    let mut server = Server::new();
    for nth in 0..40 {
        server.idle(IdleCause::LaunchGap, 400 + 10 * nth);
        server.idle(IdleCause::Scheduling, 50);
        server.idle(IdleCause::OtherRank, 90);
    }
    for nth in 0..60 {
        let (ts, dur, thread) = (1_000 * nth, 1_000 * (5 + nth), 100 + nth);
        let [queued, scheduled, first] = [500, 1_000, 3_000].map(|us| ts + us);
        let [last, answered] = [1_000, 400].map(|us| ts + dur - us);
        server.add(&format!(
            "X 9/{thread} {ts}+{dur} http.request request_id=q{nth} output_tokens=3
            i 10 {queued} request.queued request_id=q{nth}
            i 10 {scheduled} request.scheduled request_id=q{nth}
            i 9 {first} request.token request_id=q{nth}
            i 9 {last} request.token request_id=q{nth}"
        ));
        if nth % 2 == 0 {
            let prepared = ts + 100;
            server.add(&format!(
                "X 9/{thread} {prepared}+300 request.preprocess request_id=q{nth}
                i 9 {answered} request.answered request_id=q{nth}"
            ));
        }
    }
    server
}

/// Returns the report of that server, with a name that would end the page's script element, and with two prompts that
/// start with the same block.
fn hostile_report() -> RunReport {
    let mut server = served();
    let hashes = ["00000000000000aa", "00000000000000aa00000000000000bb"];
    for (nth, hashes) in hashes.iter().enumerate() {
        let ts = 500 + nth;
        server.add(&format!("i 10 {ts} request.prompt_blocks request_id=q{nth} prompt_tokens=40 block_tokens=16 blocks=2 hashes='{hashes}'"));
    }
    let mut lines = server.finished();
    lines.push(json!({"ph": "X", "pid": 9, "tid": 3, "ts": 10, "dur": 50_000, "name": HOSTILE, "cat": HOSTILE}));
    report_from_events(&lines)
}

/// Returns the report of a run with a second of start-up, and a pause of a minute that starts 10 ms before its end. Its
/// texts are set here.
fn served_after_start() -> RunReport {
    let mut report = hostile_report();
    let (from_ns, minute_ns) = (report.timeline.from_ns, 60_000_000_000);
    let wall_ns = report.timeline.part_ns * report.timeline.series[0].values.len() as i64;
    let pause_ns = from_ns + wall_ns - 10_000_000;
    let to_ns = from_ns + wall_ns + minute_ns;
    let place = Some(TraceRange {
        from_ns: from_ns + wall_ns / 2,
        dur_ns: 5_000_000,
    });
    let phase = |kind, from_ns, to_ns| RunPhase {
        kind,
        from_ns,
        to_ns,
    };
    report.run_phases = vec![
        phase(RunPhaseKind::StartUp, from_ns - 1_000_000_000, from_ns),
        phase(RunPhaseKind::Serving, from_ns, pause_ns),
        phase(RunPhaseKind::Idle, pause_ns, pause_ns + minute_ns),
        phase(RunPhaseKind::Serving, pause_ns + minute_ns, to_ns),
    ];
    report.serving = ServingTime {
        from_ns,
        to_ns,
        wall_ns,
        pauses: vec![Pause {
            from_ns: pause_ns,
            to_ns: pause_ns + minute_ns,
        }],
        is_whole: false,
    };
    report.verdict = Verdict {
        rule: VerdictRule::ConcurrencyCapped,
        text: "Requests waited for a free slot while at most 2 requests ran.".to_owned(),
        advice: "Raise `--max-num-seqs`.".to_owned(),
        evidence: "max_num_seqs 2; running 2.0 (p99)".to_owned(),
        place,
    };
    report.findings = vec![Finding {
        rule: "host_bound",
        evidence: "in a step, the devices waited for the next launch".to_owned(),
        cost: 0.5,
        of: CostOf::DeviceTime,
        advice: "graph mode",
        waited: 0.125,
        place,
    }];
    let mut requests = report.request.iter_mut();
    let slowest = requests.find(|request| &*request.request_id == "q59");
    slowest.unwrap().status = RequestStatus::Failed;
    report.crash = Some(Crash {
        process: 0,
        exit: None,
        last_ns: Some(to_ns + 1_000_000),
        step: None,
        request_ids: Vec::new(),
        requests: 0,
        spans: Vec::new(),
        followed_by: Vec::new(),
        maybe_before: Vec::new(),
    });
    report.start_up = StartUp {
        wall_ns: 1_000_000_000,
        spans: vec![StartUpSpan {
            name: "load_weights".to_owned(),
            process: 0,
            start_ns: from_ns - 900_000_000,
            ncall: 1,
            ttot_ns: 800_000_000,
            tsub_ns: 750_000_000,
        }],
    };
    let values = [("max_num_seqs".to_owned(), json!(2))];
    report.settings = vec![EngineSettings {
        process: 0,
        values: values.into(),
    }];
    report
}

/// Returns what a browser shows of a page, or `None` (with a message) if no browser is installed.
fn shown(page: &str) -> Option<Value> {
    let file = tempfile::NamedTempFile::with_suffix(".html").unwrap();
    std::fs::write(file.path(), page).unwrap();
    let shown = printed(Command::new(BROWSER).arg(file.path()), "")?;
    Some(serde_json::from_str(&shown).unwrap())
}

#[test]
fn alone_a_page_works_in_a_browser() {
    let report = served_after_start();
    assert_eq!((report.prefixes.requests, report.prefixes.n), (60, 2));
    let page = page(&report, "a run", Some("'a run'")).unwrap();
    let Some(shown) = shown(&page) else {
        return;
    };
    // No script failed, and nothing was requested from the network.
    assert_eq!(shown["problems"], json!([]));
    assert_eq!(shown["images"], 0);
    let sections = "verdict run findings requests each load devices recorded start-up settings levels phases prefixes streams slowest stacks names";
    assert_eq!(
        shown["sections"],
        json!(sections.split(' ').collect::<Vec<_>>())
    );
    assert_eq!(shown["folded"], 10);
    let words = [
        "Requests waited for a free slot while at most 2 requests ran.",
        "Raise --max-num-seqs.",
        "max_num_seqs 2; running 2.0 (p99)",
        "start-up 1.00 s (",
        "pause 60.0 s",
        "died.",
        "12.5 % of users’ waiting time",
        "50.0 % of device time",
        "Try: graph mode.",
        "load_weights",
        "The server was ready after 1.00 s.",
        "w1",
        "launch gaps (",
        "queue → prefill → decode",
        "no advice: three points",
        "2 of 60 prompts have recorded hashes. Of 64 tokens, at most 25.0 % had been seen before by their engine; cache hits are not recorded.",
        "16 more tokens are left out: only the first blocks of a prompt have hashes",
        "00000000000000aa",
        "sa-profile open 'a run' --at ",
        HOSTILE,
    ];
    has_words(shown["text"].as_str().unwrap(), &words);
    // One request comes from the trace of the devices.
    let requests = &shown["requests"];
    assert_eq!(requests["says"], "1 to 25 of 61");
    assert_eq!(requests["next"], "26 to 50 of 61");
    assert_eq!(requests["first"][3], "q0", "by arrival");
    assert_eq!(requests["filtered"].as_array().unwrap().len(), 1);
    for width in shown["widths"].as_array().unwrap() {
        assert_eq!(
            (&width["fits"], &width["verdict"]),
            (&json!(true), &json!(true)),
            "{width}"
        );
        assert_selected(&width["selected"]);
    }
    check_timeline(&shown["time"]);
    let stacks = &shown["stacks"];
    let count = |list: &Value| list.as_array().unwrap().len();
    assert!(count(&stacks["zoomed"]) < count(&stacks["all"]));
    assert_eq!(stacks["back"], json!(count(&stacks["all"])));
    assert_eq!(shown["names"], 0);
    check_drawing(&shown);
    assert_eq!(
        shown["explained"],
        json!([
            "the explanation of each figure says where it starts and ends",
            []
        ])
    );
    assert_eq!(shown["copied"], true);
    let sql = shown["sql"].as_array().unwrap();
    let is_shown = |length: &Value| length.as_u64() > Some(100);
    assert!(sql.len() > 5 && sql.iter().all(is_shown), "{sql:?}");
    let [light, dark, print] = [0, 1, 2].map(|nth| &shown["looks"][nth]);
    assert_ne!(light[0], dark[0]);
    assert_eq!((&light[1], &light[2]), (&json!(true), &json!(true)));
    assert_eq!(print[1], false, "navigation on paper");
}

/// Checks that a part of the 61 requests is selected, and that the page shows the command for that time.
fn assert_selected(selected: &Value) {
    let [requests, command] = [0, 1].map(|nth| selected[nth].as_str().unwrap());
    assert!(
        requests.contains(" of ") && !requests.ends_with(" of 61"),
        "{requests}"
    );
    assert!(
        command.contains("sa-profile open 'a run' --at "),
        "{command}"
    );
}

/// Checks that the marks of percentiles are on their curves, and that parts of requests have the colours of their
/// phases.
fn check_drawing(shown: &Value) {
    let curves = shown["curves"].as_array().unwrap();
    let is_near = |curve: &Value| curve[0].as_f64() < Some(0.5);
    assert!(
        curves.len() == 3 && curves.iter().all(is_near),
        "{curves:?}"
    );
    // The failed request of 64 ms does not count.
    let e2e = curves[0][1].as_str().unwrap();
    assert!(e2e.starts_with("E2E: p50 33.5 ms"), "{e2e}");
    for (phase, colours) in shown["colours"].as_object().unwrap() {
        assert_eq!(colours.as_array().unwrap().len(), 1, "{phase}: {colours}");
    }
}

fn check_timeline(time: &Value) {
    let drawn = time["drawn"].as_array().unwrap();
    assert!(
        drawn.len() >= 6 && drawn.iter().all(|one| one == true),
        "{drawn:?}"
    );
    for whole in ["all", "reset"] {
        assert_eq!(time[whole], "1 to 25 of 61");
    }
    assert_selected(&time["by_keys"]);
    assert_selected(&time["by_mouse"]);
    // After the pause, which the axis leaves out, times of the trace are a minute later. No request is left there.
    let [requests, command] = [0, 1].map(|nth| time["after_all"][nth].as_str().unwrap());
    assert_eq!(requests, "none");
    assert!(command.contains("--at 60"), "{command}");
    // The verdict and the finding are shown. The crash is outside of serving time.
    let incidents = time["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 2);
    assert!(
        incidents
            .iter()
            .all(|one| one[1].as_str().unwrap().contains(" for "))
    );
}

/// Without data, the page is smaller than 300 kB, and it never fetches anything.
#[test]
fn a_page_needs_nothing_else() {
    let mut report = report_from_events(&[]);
    report.verdict.text = "Nothing can be said.".to_owned();
    let page = page(&report, "nothing", None).unwrap();
    assert!(page.len() < 300_000, "{}", page.len());
    let licence = "Copyright (c) 2022 Leon Sorokin";
    has_words(&page, &["default-src 'none'", licence]);
    for fetched in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    if let Some(shown) = shown(&page) {
        assert_eq!(shown["problems"], json!([]));
        let sections = json!(["verdict", "findings", "requests", "recorded"]);
        assert_eq!(shown["sections"], sections);
    }
}

/// Checks that every request is in the page, with parts that add up to its time.
#[test]
fn a_page_has_every_request() {
    let report = hostile_report();
    let page = page(&report, "a run", None).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let request = &data["request"];
    let ids = request["id"].as_array().unwrap();
    assert_eq!(ids.len(), report.request.len());
    for (nth, e2e_us) in request["e2e_us"].as_array().unwrap().iter().enumerate() {
        let parts = request["parts_us"][nth].as_array().unwrap();
        let sum: i64 = parts.iter().map(|part| part[1].as_i64().unwrap()).sum();
        let e2e_us = e2e_us.as_i64().unwrap_or(sum);
        assert!((e2e_us - sum).abs() <= 5, "{nth}: {sum} of {e2e_us} µs");
    }
}

/// Counts the elements of the lists at this path. Dots separate lists inside lists.
fn count(list: &Value, path: &str) -> usize {
    let (member, rest) = path.split_once('.').unwrap_or((path, ""));
    match &list[member] {
        Value::Array(elements) if rest.is_empty() => elements.len(),
        Value::Array(elements) => elements.iter().map(|element| count(element, rest)).sum(),
        members => count(members, rest),
    }
}

/// Checks that each table has as many lines as the JSON has elements.
#[test]
fn tables_are_as_long_as_the_json() {
    let report = hostile_report();
    let json = serde_json::to_value(&report).unwrap();
    for (table, rows, head) in [
        (Table::Findings, "findings", "advice,cost,evidence,of,rule"),
        (
            Table::Device,
            "device",
            "process,is_worker,worker,engine,slices,",
        ),
        (Table::Idle, "idle.causes", "cause,device,ns"),
        (
            Table::Host,
            "idle.host",
            "activity,calls,device,exposed_ns,total_ns",
        ),
        (Table::WaitedFor, "idle.waited_for", "device,ns,process"),
        (
            Table::Load,
            "load",
            "max,mean,of,p50,p90,p99,process,wall_ns",
        ),
        (
            Table::SlowSteps,
            "slow_steps",
            "dur_ns,name,process,requests,start_ns",
        ),
        (
            Table::LongGaps,
            "long_gaps",
            "cause,cause_ns,dur_ns,end_ns,process,start_ns",
        ),
        (
            Table::Prefixes,
            "prefixes.prefixes",
            "engine,hit_tokens,own_tokens,prefix,",
        ),
        (Table::Stacks, "stacks", "name,ncall,parent,"),
        (
            Table::Timeline,
            "timeline.series.values",
            "from_ns,of,process,value",
        ),
    ] {
        let csv = table_csv(&report, table).unwrap();
        let rows = count(&json, rows);
        assert!(rows > 0 && csv.starts_with(head), "{table:?}: {csv}");
        assert_eq!(csv.lines().count(), rows + 1, "{table:?}");
    }
    let waits = table_csv(&report, Table::WaitedFor).unwrap();
    has_words(&waits, &["NPU 0,3600000,w1"]);
}
