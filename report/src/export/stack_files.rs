//! Formats stacks for flame graphs, speedscope and callgrind.

use crate::formats::json;
use crate::table::{RunReport, path, subtrees_ns};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use trace_merge::Error;

/// Returns the text of a file for flamegraph.pl. It has a line for each stack with self time: the process, then the
/// names, then the self time in ns.
pub(super) fn collapsed(report: &RunReport) -> String {
    // `;` separates names, so a name must not contain one. Names contain no line breaks, because the merge escapes
    // them.
    let frame = |name: &str| name.replace(';', ":");
    let mut out = String::new();
    for stack in report.stacks.iter().filter(|stack| stack.tsub_ns > 0) {
        out.push_str(&frame(&report.process_name(stack.process)));
        for frame_of in path(&report.stacks, stack) {
            out.push(';');
            out.push_str(&frame(&frame_of.name));
        }
        out.push_str(&format!(" {}\n", stack.tsub_ns));
    }
    out
}

/// A process's stacks, each a list of frame numbers, and their self times in ns.
#[derive(Default)]
struct Profile {
    samples: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

/// Returns a JSON file with one profile per process in the [schema of
/// speedscope](https://www.speedscope.app/file-format-schema.json). The width of a stack is its self time. The stacks
/// are not in time order, so use speedscope's "left heavy" view.
pub(super) fn speedscope(report: &RunReport) -> Result<String, Error> {
    let (mut frames, mut numbers) = (Vec::new(), HashMap::new());
    let mut profiles: BTreeMap<usize, Profile> = BTreeMap::new();
    for stack in report.stacks.iter().filter(|stack| stack.tsub_ns > 0) {
        let sample = path(&report.stacks, stack).into_iter().map(|frame| {
            *numbers.entry(frame.name.as_str()).or_insert_with(|| {
                frames.push(json!({"name": frame.name}));
                frames.len() - 1
            })
        });
        let profile = profiles.entry(stack.process).or_default();
        profile.samples.push(sample.collect());
        profile.weights.push(stack.tsub_ns);
    }
    let profile = |(process, profile): (usize, Profile)| -> Value {
        let end: i64 = profile.weights.iter().sum();
        json!({
            "type": "sampled",
            "name": report.process_name(process),
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": end,
            "samples": profile.samples,
            "weights": profile.weights,
        })
    };
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("sa-profile ", env!("CARGO_PKG_VERSION")),
        "shared": {"frames": frames},
        "profiles": profiles.into_iter().map(profile).collect::<Vec<_>>(),
    });
    Ok(json(&file)? + "\n")
}

/// Calls from one function to another: their number and their inclusive time.
#[derive(Default)]
struct Called {
    calls: u64,
    inclusive_ns: i64,
}

/// All spans of one name in a process.
#[derive(Default)]
struct Function<'a> {
    self_ns: i64,
    called: BTreeMap<&'a str, Called>,
}

/// Returns the text of a file with the self times of names and the calls between them, in the [format of
/// callgrind](https://valgrind.org/docs/manual/cl-format.html). Each process is a file, and each name in it is a
/// function. There are no line numbers.
pub(super) fn callgrind(report: &RunReport) -> String {
    let mut functions: BTreeMap<(usize, &str), Function<'_>> = BTreeMap::new();
    let inclusive_ns = subtrees_ns(&report.stacks);
    for (stack, inclusive_ns) in report.stacks.iter().zip(inclusive_ns) {
        let function = functions.entry((stack.process, &stack.name)).or_default();
        function.self_ns = function.self_ns.saturating_add(stack.tsub_ns);
        if let Some(parent) = stack.parent.map(|parent| &report.stacks[parent]) {
            let around = functions.entry((parent.process, &parent.name)).or_default();
            let called = around.called.entry(&stack.name).or_default();
            called.calls += stack.ncall;
            called.inclusive_ns = called.inclusive_ns.saturating_add(inclusive_ns);
        }
    }
    let all = functions.values();
    let total = all.fold(0_i64, |sum, function| sum.saturating_add(function.self_ns));
    let mut out = format!(
        "# callgrind format\nversion: 1\ncreator: sa-profile {}\npositions: line\nevents: ns\nsummary: {total}\n",
        env!("CARGO_PKG_VERSION")
    );
    for ((process, name), function) in &functions {
        let file = report.process_name(*process);
        out.push_str(&format!("\nfl={file}\nfn={name}\n0 {}\n", function.self_ns));
        for (name, called) in &function.called {
            let (calls, ns) = (called.calls, called.inclusive_ns);
            out.push_str(&format!("cfn={name}\ncalls={calls} 0\n0 {ns}\n"));
        }
    }
    out
}
