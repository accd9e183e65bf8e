//! Flows that programs draw and the merge continues, compared with a naive reader.

use crate::full::cases;
use crate::invocation::{Merged, RunDir, one_block};
use crate::random::Rng;
use crate::trace::ns;
use format_oracle::writer::Process;
use format_oracle::writer::line::On;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const CASES: u64 = 150;

/// A flow event: phase, time in ns, thread, and for flows of the program category and id.
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

/// Returns the flow events of a trace, sorted. Ids of the merge's own flows are left out, because
/// they are only numbers.
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

/// Events of a request, and of its flow, in a trace without links.
#[derive(Default)]
struct Request<'a> {
    /// Time of the event, and its position in the trace.
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
            // The name contains the request.
            requests.entry(flow_id(event)).or_default().flow.push(event);
        }
        let ids = event["args"]["request_ids"].as_array();
        for id in ids.into_iter().flatten() {
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
        let is_prior = match early.as_slice() {
            [] => false,
            [(_, nth)] => !holds(self.spans[nth]),
            _ => true,
        };
        for (nth, (ts_ns, at)) in early.iter().enumerate().filter(|_| is_prior) {
            let event = self.spans[at];
            if nth == 0 || !holds(event) {
                added.push(link(if nth == 0 { "s" } else { "t" }, *ts_ns, event));
            }
        }
        added.extend(is_prior.then(|| link("f", start_ns, start)));
        added
    }
}

/// Writes three processes that serve a few requests. Some of their threads draw flows of these.
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
        // Spans of a thread are nested or disjoint, so none moves to an extra lane.
        let len = [2, 16, 64][rng.below(3)];
        let ts_ns = at(nth, len * rng.below(400 / len));
        lines[nth].push(match rng.one_in(6) {
            true => on.instant(ts_ns, "token", &args),
            false => on.span(ts_ns, len as u64 * 1_000 - 100, "step", &args),
        });
    }
    for (process, lines) in processes.iter().zip(lines) {
        one_block(process, &lines).write_here(folder);
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
    let (mut steps, mut prior_flows) = (0, 0);
    for seed in 0..cases(CASES) {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        write_program(&mut rng, &dir.fragments());
        let [from, to] = [rng.below(200), 200 + rng.below(200)].map(|us| format!("{us}us"));
        for options in [
            &["--no-settle"][..],
            &["--no-settle", "--from", &from, "--to", &to],
        ] {
            let what = format!("seed {seed}, {options:?}");
            let merged = |more: &[&str]| Merged::new(&[options, more].concat(), &[dir.path()]);
            let (linked, unlinked) = (merged(&[]), merged(&["--no-link-requests"]));
            let found = without(flow_events(&linked), &flow_events(&unlinked));
            assert_eq!(found, added(&unlinked), "{what}");
            let sorted = flow_events(&merged(&["--sort"]));
            assert_eq!(sorted, flow_events(&linked), "{what}");
            let joined = &linked.report.0["links"]["events_joined"];
            steps += joined.as_u64().unwrap_or(0);
            let is_prior = |event: &&FlowEvent| event.0 == "f" && event.3 == "sa_link";
            prior_flows += found.iter().filter(is_prior).count() as u64;
        }
    }
    assert!(steps > 2 * cases(CASES), "{steps} steps");
    assert!(
        prior_flows > 2 * cases(CASES),
        "{prior_flows} flows of the merge"
    );
}
