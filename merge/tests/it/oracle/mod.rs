//! The trace that a merge must write, computed the naive way from the fragments that
//! `format_oracle` reads: one thread, everything in memory.

mod lanes;
mod line;
pub(crate) mod links;

use crate::trace::{Event, content, ns};
use format_oracle::reader;
use line::{Source, ValidLine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// File name, byte offset, kind.
pub(crate) type Damage = (String, u64, String);

/// Expected content of a merge's trace and report.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) events: Vec<Event>,
    pub(crate) damage: Vec<Damage>,
    /// File and range of each incomplete block. Damage inside is not reported separately.
    pub(crate) broken: Vec<(String, Range<usize>)>,
    /// For each damaged block that shares positions with another one, the number of its lines that
    /// `events` lacks. They may be the same lines.
    pub(crate) repeated: Vec<usize>,
    pub(crate) unfinished: u64,
    pub(crate) lost_events: u64,
    pub(crate) base_ns: i64,
    pub(crate) lanes: lanes::LaneAssignment,
    pub(crate) process_names: BTreeMap<String, String>,
    pub(crate) thread_names: BTreeMap<String, String>,
}

/// Reads every fragment in `folder`.
pub(crate) fn read(folder: &Path) -> Expected {
    let mut expected = Expected::default();
    let mut lines = Vec::new();
    reader::each_fragment(folder, |fragment, stitched| {
        let source = Source::new(&fragment.name, fragment.header());
        let mut add = |value| {
            let source = source.clone();
            lines.push(ValidLine { source, value });
        };
        for line in stitched.lines {
            for (at, found) in line::read(line.bytes, line.is_ended) {
                let offset = (line.offset + at) as u64;
                match found {
                    Ok(value) => add(value),
                    Err(kind) if line.is_plain => {
                        let damage = (line.file.clone(), offset, kind.into());
                        expected.damage.push(damage);
                    }
                    // It counts as damage of the block.
                    Err(_) => {}
                }
            }
        }
        stitched.unfinished.into_iter().for_each(add);
        let is_counted = |kind| ![reader::GAP_AT_END, reader::LOST_BLOCK].contains(&kind);
        let mut damage = stitched.damage;
        damage.retain(|one| is_counted(one.kind));
        let place = |one: reader::Damage| (one.file, one.offset as u64, one.kind.to_owned());
        expected.damage.extend(damage.into_iter().map(place));
        expected.broken.extend(stitched.incomplete);
        expected.repeated.extend(stitched.repeated);
    });
    show(&lines, &mut expected);
    expected.damage.sort();
    expected
}

fn show(lines: &[ValidLine], expected: &mut Expected) {
    let shown: Vec<&ValidLine> = lines
        .iter()
        .filter(|line| line.value["ph"] != "M")
        .collect();
    expected.base_ns = shown.iter().map(|line| line.ts_ns()).min().unwrap_or(0);
    for event in &shown {
        let value = &event.value;
        expected.events.push(Event {
            content: content(value, event.ts_ns() - expected.base_ns),
            process: event.process(),
            thread: event.thread(),
            id: event.id(),
        });
        expected.unfinished += u64::from(value["ph"] == "B" && value["args"]["unfinished"] == true);
        let is_loss = value["name"] == "sa_loss" && value["cat"] == "sa_profile";
        if is_loss && value["args"]["cause"] != "clamped" {
            expected.lost_events += value["args"]["events"].as_u64().unwrap();
        }
    }
    expected.lanes = lanes::assign_lanes(&shown, &mut expected.events);
    expected.show_complete_spans(&shown);
    for record in lines.iter().filter(|line| line.value["ph"] == "M") {
        let Some(name) = record.value["args"]["name"].as_str() else {
            continue;
        };
        let (names, key) = match record.value["name"].as_str() {
            Some("process_name") => (&mut expected.process_names, record.process()),
            Some("thread_name") => (&mut expected.thread_names, record.thread()),
            _ => continue,
        };
        names.insert(key, name.to_owned());
    }
}

impl Expected {
    /// Replaces begins and ends at the same time with complete spans.
    fn show_complete_spans(&mut self, shown: &[&ValidLine]) {
        let mut ends = Vec::new();
        for (begin, end) in &self.lanes.complete {
            let mut value = shown[*begin].value.clone();
            (value["ph"], value["dur"]) = ("X".into(), 0.into());
            let members = shown[*end].value["args"].as_object();
            for (key, arg) in members.into_iter().flatten() {
                value["args"][key] = arg.clone();
            }
            let ts_ns = shown[*begin].ts_ns() - self.base_ns;
            self.events[*begin].content = content(&value, ts_ns);
            ends.push(*end);
        }
        ends.sort_unstable();
        for end in ends.into_iter().rev() {
            self.events.remove(end);
        }
    }
}

/// Returns a time in ns, shifted by the offset of the time namespace.
fn shifted_ns(value: &Value, offset_ns: i64) -> i64 {
    ns(value) - offset_ns
}
