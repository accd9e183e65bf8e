//! A naive second reader, written from FORMAT.md alone: whole files in memory, one thread, serde_json for every line.

mod file;
mod line;
pub(crate) mod links;
mod recorder;
mod ring;
mod rows;

use crate::trace::{Event, content, ns};
use file::Piece;
use line::{Kept, Source};
use recorder::Recorder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// File name, byte offset, kind.
pub(crate) type Damage = (String, u64, String);

/// What a merge must show.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) events: Vec<Event>,
    pub(crate) damage: Vec<Damage>,
    /// Where incomplete blocks stand: their damage speaks for their lines'.
    pub(crate) broken: Vec<(String, Range<u64>)>,
    /// Whether two damaged blocks hold the same positions: which of their lines are the same nobody can tell.
    pub(crate) ambiguous: bool,
    pub(crate) unfinished: u64,
    pub(crate) lost_events: u64,
    pub(crate) base_ns: i64,
    pub(crate) shown: rows::Shown,
    pub(crate) process_names: BTreeMap<String, String>,
    pub(crate) thread_names: BTreeMap<String, String>,
}

/// Reads every fragment in `folder`.
pub(crate) fn read(folder: &Path) -> Expected {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.starts_with("trace.") && name.ends_with(".jsonl"));
    names.sort();
    let mut expected = Expected::default();
    let mut recorders: BTreeMap<String, Recorder> = BTreeMap::new();
    let mut kept = Vec::new();
    for name in names {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        let (header, pieces) = file::read(&name, &bytes, &mut expected.damage);
        let source = Source::new(&name, header.as_ref());
        let recorder = recorders
            .entry(source.recorder.clone())
            .or_insert_with(|| Recorder::new(&source, folder, &name, header.as_ref()));
        recorder.torn_header = file::torn_header(&name, &bytes);
        for piece in pieces {
            match piece {
                Piece::Line(value) => kept.push(Kept {
                    source: source.clone(),
                    value,
                }),
                Piece::Block(block) => recorder.blocks.push(block),
            }
        }
    }
    for recorder in recorders.values_mut() {
        recorder.ended |= kept.iter().any(|kept| {
            kept.source.recorder == recorder.source.recorder && kept.value["name"] == "sa_end"
        });
        let broken = recorder
            .blocks
            .iter()
            .filter(|block| block.content.is_none());
        expected
            .broken
            .extend(broken.map(|block| (block.file.clone(), block.offset + 1..block.end)));
        recorder.settle(&mut kept, &mut expected.damage);
        expected.ambiguous |= recorder.ambiguous;
    }
    show(&kept, &mut expected);
    expected.damage.sort();
    expected
}

fn show(kept: &[Kept], expected: &mut Expected) {
    let shown: Vec<&Kept> = kept.iter().filter(|kept| kept.value["ph"] != "M").collect();
    expected.base_ns = shown.iter().map(|kept| kept.ts_ns()).min().unwrap_or(0);
    for event in &shown {
        let value = &event.value;
        expected.events.push(Event {
            content: content(value, event.ts_ns() - expected.base_ns),
            process: event.process(),
            thread: event.thread(),
            id: event.id(),
        });
        expected.unfinished += u64::from(value["ph"] == "B" && value["args"]["unfinished"] == true);
        if value["name"] == "sa_loss" && value["args"]["cause"] != "clamped" {
            expected.lost_events += value["args"]["events"].as_u64().unwrap();
        }
    }
    expected.shown = rows::spread(&shown, &mut expected.events);
    expected.show_wholes(&shown);
    for record in kept.iter().filter(|kept| kept.value["ph"] == "M") {
        let Some(name) = record.value["args"]["name"].as_str() else {
            continue;
        };
        if record.value["name"] == "process_name" {
            expected
                .process_names
                .insert(record.process(), name.to_owned());
        } else if record.value["name"] == "thread_name" {
            expected
                .thread_names
                .insert(record.thread(), name.to_owned());
        }
    }
}

impl Expected {
    /// Shows begins and ends at one time as whole spans.
    fn show_wholes(&mut self, shown: &[&Kept]) {
        let mut ends = Vec::new();
        for (begin, end) in &self.shown.wholes {
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

/// A time in ns, shifted by the time namespace's offset.
fn shifted_ns(value: &Value, offset_ns: i64) -> i64 {
    ns(value) - offset_ns
}
