//! The flows that programs draw and the merge continues: held against a naive reader, and in the order that viewers ask for.

use crate::catapult;
use crate::full::cases;
use crate::invocation::{Merged, RunDir};
use crate::links::{ms, run_of, span};
use crate::random::Rng;
use crate::trace::ns;
use format_oracle::writer::Process;
use format_oracle::writer::line::{On, stream};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const CASES: u64 = 150;

/// A flow event: phase, time in ns, pid and tid, and for flows of the program category and id.
type FlowEvent = (String, i64, String, String);

fn phase(event: &Value) -> &str {
    event["ph"].as_str().unwrap()
}

fn is_flow(event: &Value) -> bool {
    ["s", "t", "f"].contains(&phase(event))
}

fn thread(event: &Value) -> String {
    format!("{}/{}", event["pid"], event["tid"])
}

/// Asserts that each flow starts once, before all its steps, and ends after them. Viewers take events of one time in the order of the trace.
fn assert_valid(merged: &Merged, what: &str) {
    let mut flows: BTreeMap<String, Vec<(i64, &str)>> = BTreeMap::new();
    for event in merged.trace.events.iter().filter(|event| is_flow(event)) {
        let key = ["cat", "name", "id"].map(|key| event[key].to_string());
        let flow = flows.entry(key.join(" ")).or_default();
        flow.push((ns(&event["ts"]), phase(event)));
    }
    for (key, mut flow) in flows {
        flow.sort_by_key(|event| event.0);
        let phases: String = flow.iter().map(|event| event.1).collect();
        let rest = phases.strip_prefix('s').unwrap_or("no start");
        let steps = rest.strip_suffix('f').unwrap_or(rest);
        assert!(
            steps.chars().all(|step| step == 't'),
            "{what}: {key}: {flow:?}"
        );
    }
}

/// Returns the flow events of a trace, sorted. Ids of the merge's own flows are left out, because they are only numbers.
fn flow_events(merged: &Merged) -> Vec<FlowEvent> {
    let events = merged.trace.events.iter().filter(|event| is_flow(event));
    let mut events: Vec<FlowEvent> = events.map(flow_event).collect();
    events.sort();
    events
}

fn flow_event(event: &Value) -> FlowEvent {
    let id = match event["cat"].as_str() {
        Some("sa_link") => "sa_link".to_owned(),
        category => format!("{category:?} {}", event["id"]),
    };
    (phase(event).to_owned(), ns(&event["ts"]), thread(event), id)
}

/// What a request or its flow is in a trace without links.
#[derive(Default)]
struct Request<'a> {
    /// Time, position in the trace, and the event.
    mentions: BTreeSet<(i64, usize)>,
    spans: BTreeMap<usize, &'a Value>,
    flow: Vec<&'a Value>,
}

/// Returns the flow events that the merge adds to a trace, the naive way.
fn added(unlinked: &Merged) -> Vec<FlowEvent> {
    let mut requests: BTreeMap<String, Request<'_>> = BTreeMap::new();
    let flow_id = |event: &Value| event["name"].as_str().unwrap()[..1].to_owned();
    for (nth, event) in unlinked.trace.events.iter().enumerate() {
        if is_flow(event) {
            // The name says of which request it is.
            requests.entry(flow_id(event)).or_default().flow.push(event);
        }
        for id in event["args"]["request_ids"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let request = requests.entry(id.as_str().unwrap().to_owned());
            let request = request.or_default();
            request.mentions.insert((ns(&event["ts"]), nth));
            request.spans.insert(nth, event);
        }
    }
    let mut added: Vec<_> = requests.values().flat_map(Request::added).collect();
    added.sort();
    added
}

/// Returns the time at which an event ends, if it is a span.
fn end(event: &Value) -> Option<i64> {
    event.get("dur").map(|dur| ns(&event["ts"]) + ns(dur))
}

impl Request<'_> {
    fn added(&self) -> Vec<FlowEvent> {
        let of_phase = |wanted| self.flow.iter().filter(move |event| phase(event) == wanted);
        let link = |phase: &str, ts_ns: i64, on: &Value| {
            (phase.to_owned(), ts_ns, thread(on), "sa_link".to_owned())
        };
        let Some(start) = of_phase("s").next() else {
            if self.mentions.len() < 2 {
                return Vec::new();
            }
            let (first, last) = (self.mentions.first(), self.mentions.last());
            let all = self.mentions.iter().map(|at| {
                let event = self.spans[&at.1];
                let phase = match Some(at) {
                    at if at == first => "s",
                    at if at == last => "f",
                    _ => "t",
                };
                link(phase, at.0, event)
            });
            return all.collect();
        };
        let start_ns = ns(&start["ts"]);
        let end_ns = of_phase("f").map(|event| ns(&event["ts"])).min();
        let mut done: BTreeSet<String> = self.flow.iter().map(|event| thread(event)).collect();
        let mut added = Vec::new();
        for (ts_ns, nth) in &self.mentions {
            let event = self.spans[nth];
            if end(event).is_some() && done.insert(thread(event)) {
                let is_within = start_ns < *ts_ns && *ts_ns < end_ns.unwrap_or(i64::MAX);
                let (_, _, _, id) = flow_event(start);
                let step = ("t".to_owned(), *ts_ns, thread(event), id);
                added.extend(is_within.then_some(step));
            }
        }
        let holds = |event: &Value| {
            thread(event) == thread(start) && end(event).is_some_and(|end| end >= start_ns)
        };
        let early: Vec<_> = self.mentions.range(..(start_ns, 0)).collect();
        let is_lead = match early.as_slice() {
            [] => false,
            [(_, nth)] => !holds(self.spans[nth]),
            _ => true,
        };
        for (nth, (ts_ns, at)) in early.iter().enumerate().filter(|_| is_lead) {
            let event = self.spans[at];
            if nth == 0 || !holds(event) {
                added.push(link(if nth == 0 { "s" } else { "t" }, *ts_ns, event));
            }
        }
        added.extend(is_lead.then(|| link("f", start_ns, start)));
        added
    }
}

/// Writes three processes that serve a few requests, whose flows some of their threads draw.
fn write_program(rng: &mut Rng, folder: &Path) {
    let processes = [10, 20, 30].map(|pid| Process {
        offset_ns: if rng.one_in(2) { 100_000 } else { 0 },
        ..Process::new(pid)
    });
    let mut lines = [const { Vec::<String>::new() }; 3];
    let on = |rng: &mut Rng| {
        let nth = rng.below(3);
        let pid = [10, 20, 30][nth];
        let tid = pid + u32::try_from(rng.below(2)).unwrap();
        (nth, On { pid, tid })
    };
    let at = |nth: usize, us: usize| {
        // Flows start and end at times at which no span begins.
        let offset_ns = u64::try_from(processes[nth].offset_ns).unwrap();
        5_000_000_000 + us as u64 * 1_000 + offset_ns
    };
    for (request, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let of_request = |on: On, phase: &str, ts_ns| {
            let line = on.flow(phase, ts_ns, "global", xxh3_64(name.as_bytes()));
            line.replace(r#""name":"request""#, &format!(r#""name":"{name}""#))
        };
        let (start, len) = (1 + 2 * rng.below(150), 2 + 2 * rng.below(100));
        if !rng.one_in(5) {
            let (nth, on) = on(rng);
            lines[nth].push(of_request(on, "s", at(nth, start)));
        }
        for _ in 0..rng.below(3) {
            let (nth, on) = on(rng);
            let us = start + 1 + rng.below(len - 1);
            lines[nth].push(of_request(on, "t", at(nth, us) + 3 + request as u64));
        }
        if !rng.one_in(4) {
            let (nth, on) = on(rng);
            lines[nth].push(of_request(on, "f", at(nth, start + len)));
        }
    }
    for number in 0..10 + rng.below(60) {
        let (nth, on) = on(rng);
        let ids: Vec<String> = (0..1 + rng.below(6))
            .map(|_| format!(r#""{}""#, ["a", "b", "c", "d", "e"][rng.below(5)]))
            .collect();
        let args = format!(r#""n":{number},"request_ids":[{}]"#, ids.join(","));
        // Spans of a thread lie within one another or apart, so none moves to a row of its own.
        let len = [2, 16, 64][rng.below(3)];
        let ts_ns = at(nth, len * rng.below(400 / len));
        lines[nth].push(match rng.one_in(6) {
            true => on.instant(ts_ns, "token", &args),
            false => on.span(ts_ns, len as u64 * 1_000 - 100, "step", &args),
        });
    }
    for (process, lines) in processes.iter().zip(lines) {
        let mut fragment = process.fragment();
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(folder);
    }
}

/// Removes the flow events of the program from all.
fn without(mut all: Vec<FlowEvent>, programs: &[FlowEvent]) -> Vec<FlowEvent> {
    for event in programs {
        let at = all
            .binary_search(event)
            .expect("the program's events are all there");
        all.remove(at);
    }
    all
}

#[test]
fn random_flows_are_continued_as_the_naive_reader_continues_them() {
    let (mut steps, mut leads) = (0, 0);
    for seed in 0..cases(CASES) {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        write_program(&mut rng, &dir.fragments());
        let [from, to] = [rng.below(200), 200 + rng.below(200)].map(|us| format!("{us}us"));
        for options in [
            &["--no-settle"][..],
            &["--no-settle", "--from", &from, "--to", &to],
        ] {
            let what = format!("seed {seed}, {options:?}");
            let of = |more: &[&str]| Merged::of(&[options, more].concat(), &[dir.path()]);
            let (linked, unlinked) = (of(&[]), of(&["--no-link-requests"]));
            let found = without(flow_events(&linked), &flow_events(&unlinked));
            assert_eq!(found, added(&unlinked), "{what}");
            assert_eq!(
                flow_events(&of(&["--sort"])),
                flow_events(&linked),
                "{what}"
            );
            steps += linked.report.0["links"]["events_joined"]
                .as_u64()
                .unwrap_or(0);
            leads += found
                .iter()
                .filter(|event| event.0 == "f" && event.3 == "sa_link")
                .count();
        }
    }
    assert!(steps > 2 * cases(CASES), "{steps} steps");
    assert!(
        leads as u64 > 2 * cases(CASES),
        "{leads} flows of the merge"
    );
}

#[test]
fn every_flow_starts_once_and_ends_last() {
    for seed in 0..cases(CASES) {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        write_program(&mut rng, &dir.fragments());
        let merged = Merged::of(&["--no-settle"], &[dir.path()]);
        // A program may draw a flow that has no start.
        let starts = |event: &&Value| phase(event) == "s" && event["cat"] == "flow";
        let started: BTreeSet<String> = merged
            .trace
            .events
            .iter()
            .filter(starts)
            .map(|event| event["id"].to_string())
            .collect();
        let mut merged = merged;
        merged.trace.events.retain(|event| {
            !is_flow(event) || event["cat"] != "flow" || started.contains(&event["id"].to_string())
        });
        assert_valid(&merged, &format!("seed {seed}"));
    }
}

/// Returns the names of the spans that get a step of the program's flow on threads on which it draws nothing.
fn joined(merged: &Merged) -> Vec<&str> {
    let steps = merged
        .trace
        .events
        .iter()
        .filter(|event| phase(event) == "t" && event["cat"] == "flow");
    let name = |step: &Value| {
        let is_at = |event: &&Value| event["ts"] == step["ts"] && thread(event) == thread(step);
        merged.trace.phase("X").into_iter().find(is_at).unwrap()["name"]
            .as_str()
            .unwrap()
    };
    let mut names: Vec<&str> = steps.map(name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_span_after_the_end_of_the_programs_flow_gets_no_step() {
    let test = "a_span_after_the_end_of_the_programs_flow_gets_no_step";
    // The engine's clock is 1 s ahead of the API server's.
    let api = Process::new(10);
    let engine = Process {
        offset_ns: 1_000_000_000,
        ..Process::new(20)
    };
    let on = api.main_thread();
    let id = r#""request_id":"r""#;
    let flow = |phase: &str, at_ms| on.flow(phase, ms(at_ms), "global", xxh3_64(b"r"));
    let far = |nth: u32, at_ms: u64, name: &str| {
        engine
            .thread(20 + nth)
            .span(ms(at_ms) + 1_000_000_000, 500_000, name, id)
    };
    let of_engine = vec![
        far(0, 4, "step"),
        far(0, 12, "after"),
        far(1, 9, "before the end"),
        far(2, 10, "at the end"),
        far(3, 11, "after"),
    ];
    let of_api = vec![
        span(on, 0, "http", id),
        flow("s", 0),
        flow("f", 10),
        span(on, 10, "answer", id),
    ];
    let dir = run_of(&[(api.clone(), of_api), (engine.clone(), of_engine)]);
    let merged = dir.merge();
    assert_eq!(joined(&merged), ["before the end", "step"]);
    assert_eq!(merged.report.0["links"]["events_joined"], 2);
    assert_valid(&merged, "after the end");
    let trace = dir.path().join("merged.json");
    std::fs::write(&trace, &merged.bytes).unwrap();
    // It counts an arrow for each pair of events in a row.
    if let Some(view) = catapult::view(test, &trace) {
        assert_eq!(view.flows, 3);
    }
}

/// Between the begin of that span and the start of the flow, another thread works on the request.
#[test]
fn arrows_that_lead_to_the_programs_flow_end_at_its_start() {
    let (api, engine) = (Process::new(10), Process::new(20));
    let (on, far) = (api.main_thread(), engine.main_thread());
    let id = r#""request_id":"r""#;
    let flow = |on: On, phase: &str, at_ms| on.flow(phase, ms(at_ms), "global", xxh3_64(b"r"));
    let of_api = vec![
        on.span(ms(1), 2_000_000, "inner", id),
        flow(on, "s", 8),
        on.span(ms(7), 4_000_000, "add", id),
        on.span(ms(0), 20_000_000, "http", id),
    ];
    let of_engine = vec![
        span(far, 5, "early", id),
        span(far, 9, "step", id),
        flow(far, "f", 9),
    ];
    let merged = run_of(&[(api, of_api), (engine, of_engine)]).merge();
    assert_valid(&merged, "nested");
    let links = merged.trace.links();
    let mut links: Vec<_> = links
        .map(|event| (ns(&event["ts"]) / 1_000_000, phase(event)))
        .collect();
    links.sort_unstable();
    assert_eq!(links, [(0, "s"), (1, "t"), (5, "t"), (8, "f")]);
}

#[test]
fn on_each_thread_the_first_span_of_a_request_gets_a_step() {
    let (api, engine) = (Process::new(10), Process::new(20));
    let on = api.main_thread();
    let flow =
        |id: &str, phase: &str, at_ms| on.flow(phase, ms(at_ms), "global", xxh3_64(id.as_bytes()));
    let mut of_api = Vec::new();
    for id in ["a", "b", "c", "d"] {
        of_api.extend([flow(id, "s", 0), flow(id, "f", 100)]);
    }
    of_api.push(on.span(
        ms(0),
        100_000_000,
        "http",
        r#""request_ids":["a","b","c","d"]"#,
    ));
    let [scheduler, worker] = [20, 21].map(|tid| engine.thread(tid));
    let mut of_engine = Vec::new();
    for step in 0..20 {
        let ids = if step < 10 {
            r#""a","b""#
        } else {
            r#""a","b","c","d""#
        };
        let args = format!(r#""step":{step},"request_ids":[{ids}]"#);
        let at = ms(2 + 4 * step);
        of_engine.push(scheduler.span(at, 1_000_000, &format!("schedule {step}"), &args));
        of_engine.push(worker.span(at + 1_500_000, 400_000, &format!("inner {step}"), &args));
        of_engine.push(worker.span(at + 1_000_000, 2_000_000, &format!("step {step}"), &args));
    }
    let merged = run_of(&[(api, of_api), (engine, of_engine)]).merge();
    let expected = [
        ["schedule 0"; 2],
        ["schedule 10"; 2],
        ["step 0"; 2],
        ["step 10"; 2],
    ];
    assert_eq!(joined(&merged), expected.as_flattened());
    assert_valid(&merged, "batches");
}
