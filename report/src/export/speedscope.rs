//! Stacks for speedscope, by its [schema](https://www.speedscope.app/file-format-schema.json).

use crate::formats;
use crate::table::{RunReport, path};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use trace_merge::Error;

/// A process: its stacks, each a list of numbers of frames, and their times.
#[derive(Default)]
struct Profile {
    samples: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

/// A profile for each process. In each, stacks stand beside each other, as wide as their own time: speedscope's "left heavy" view is the one to look at.
pub(super) fn json(report: &RunReport) -> Result<String, Error> {
    let (mut frames, mut numbers) = (Vec::new(), HashMap::new());
    let mut profiles: BTreeMap<usize, Profile> = BTreeMap::new();
    for stack in report.stacks.iter().filter(|stack| stack.tsub_ns > 0) {
        let sample = path(&report.stacks, stack).into_iter().map(|of| {
            *numbers.entry(of.name.as_str()).or_insert_with(|| {
                frames.push(json!({"name": of.name}));
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
            "name": report.recorded.process_name(process),
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
    Ok(formats::json(&file)? + "\n")
}
