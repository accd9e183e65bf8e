//! The flows that link requests in Perfetto's own trace processor: for each request exactly its
//! chain, in order of time.

use crate::invocation::{Merged, one_block};
use crate::oracle::links::expected;
use crate::perfetto::{ERRORS, SLICES, number, query_bytes};
use crate::random::Rng;
use crate::trace::ns;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Time in ns and name of the slices at both ends of an arrow.
type Arrow = [(i64, String); 2];

const ARROWS: &str = "select f.trace_id, so.ts, so.name, si.ts, si.name from flow f \
    join slice so on so.id = f.slice_out join slice si on si.id = f.slice_in";

/// Returns the arrows that the events of a merged trace require, by request.
fn expected_arrows(merged: &Merged) -> Vec<Vec<Arrow>> {
    let mut names = BTreeMap::new();
    for event in merged.trace.shown() {
        let track = (event["pid"].to_string(), event["tid"].to_string());
        let name = event["name"].as_str().unwrap();
        // Of slices that begin together, a viewer uses the innermost one, which ended first.
        let dur_ns = event.get("dur").map_or(0, ns);
        let entry = names.entry((ns(&event["ts"]), track));
        let innermost = entry.or_insert((dur_ns, name));
        *innermost = (*innermost).min((dur_ns, name));
    }
    let end = |(ts_ns, _, pid, tid): &(i64, String, String, String)| {
        let (_, name) = names[&(*ts_ns, (pid.clone(), tid.clone()))];
        (*ts_ns, name.to_owned())
    };
    let arrows = expected(merged.trace.shown()).into_iter().map(|flow| {
        flow.windows(2)
            .map(|pair| [end(&pair[0]), end(&pair[1])])
            .collect()
    });
    sorted(arrows.collect())
}

fn sorted(mut flows: Vec<Vec<Arrow>>) -> Vec<Vec<Arrow>> {
    flows.iter_mut().for_each(|flow| flow.sort());
    flows.sort();
    flows
}

/// Checks the arrows that the trace processor shows for each request. Returns the number of slices.
/// Returns `None`, with a loud message, if it cannot be set up.
pub(crate) fn check(test: &str, merged: &Merged) -> Option<u64> {
    let rows = query_bytes(test, &merged.bytes, &[ERRORS, ARROWS, SLICES])?;
    assert!(rows[0].is_empty(), "{test}: {:?}", rows[0]);
    let mut flows: BTreeMap<String, Vec<Arrow>> = BTreeMap::new();
    for row in &rows[1] {
        let end = |ts: &Value, name: &Value| (ts.as_i64().unwrap(), name.as_str().unwrap().into());
        let arrow = [end(&row[1], &row[2]), end(&row[3], &row[4])];
        flows.entry(row[0].to_string()).or_default().push(arrow);
    }
    let shown = sorted(flows.into_values().collect());
    assert_eq!(shown, expected_arrows(merged), "{test}");
    assert!(!shown.is_empty());
    Some(number(&rows[2]))
}

/// Writes requests that arrive in one process and are served in two others, with several requests
/// per step. There are nested spans and instants in between.
pub(crate) fn write_serving(rng: &mut Rng, folder: &Path) {
    let (api, engine) = (Process::new(10), Process::new(20));
    let (on, far) = (api.main_thread(), engine.main_thread());
    let [mut from_api, mut from_engine, mut from_worker] = [const { Vec::<String>::new() }; 3];
    let mut serial = 0;
    for step in 0..120 {
        let ts_ns = 5_000_000_000 + step * 1_000_000;
        let mut name = |what: &str| {
            serial += 1;
            format!("{what} {serial}")
        };
        let id = |rng: &mut Rng| format!("cmpl-{}", rng.below(25));
        let one = id(rng);
        let args = format!(r#""request_id":"{one}""#);
        from_api.push(on.instant(ts_ns + 30_000, &name("queued"), &args));
        from_api.push(on.span(ts_ns + 20_000, 50_000, &name("add"), &args));
        from_api.push(on.span(ts_ns, 900_000, &name("http"), &args));
        let ids: Vec<_> = (0..4)
            .map(|_| format!(r#""{}-0-0123abcd""#, id(rng)))
            .collect();
        let args = format!(r#""request_ids":[{}]"#, ids.join(","));
        from_engine.push(far.span(ts_ns + 200_000, 300_000, &name("inner"), ""));
        from_engine.push(far.span(ts_ns + 150_000, 500_000, &name("step"), &args));
        let (ts, inner) = (ts_ns / 1000 + 300, ts_ns / 1000 + 310);
        from_worker.push(format!(r#"{{"name":"{}","cat":"k","ph":"X","ts":{inner},"dur":90,"pid":30,"tid":140000000000007,"args":{{}}}}"#, name("kernel")));
        from_worker.push(format!(r#"{{"name":"{}","cat":"w","ph":"X","ts":{ts},"dur":200,"pid":30,"tid":140000000000007,"args":{{"batch_size":4,{args}}}}}"#, name("decode")));
    }
    for (process, lines) in [(api, from_api), (engine, from_engine)] {
        one_block(&process, &lines).write_here(folder);
    }
    let mut fragment = Fragment::foreign(30);
    fragment.raw(&stream(&from_worker));
    fragment.write_here(folder);
}
