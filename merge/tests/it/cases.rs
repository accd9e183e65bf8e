//! Merges that text files in `tests/cases` describe, each with its inputs and what comes of it. The README there explains their form.

use crate::foreign::fixture;
use crate::fuzzed;
use crate::invocation::{Ended, RunDir, packed, trace_merge};
use crate::perfetto::{ERRORS, query_bytes};
use crate::trace::Trace;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Merges of the same inputs that give the same.
struct Merges<'a> {
    commands: Vec<&'a str>,
    expected: Vec<&'a str>,
}

struct Case<'a> {
    name: &'a str,
    /// Name and lines of each input.
    files: Vec<(&'a str, Vec<&'a str>)>,
    merges: Vec<Merges<'a>>,
}

fn parse(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("=== ") {
            cases.push(Case {
                name,
                files: Vec::new(),
                merges: Vec::new(),
            });
            continue;
        }
        let Some(case) = cases.last_mut() else {
            continue;
        };
        let merges = case.merges.last_mut();
        if let Some(name) = line.strip_prefix("--- ") {
            case.files.push((name, Vec::new()));
        } else if let Some(command) = line.strip_prefix("$ ") {
            match merges.filter(|merges| merges.expected.is_empty()) {
                Some(merges) => merges.commands.push(command),
                None => case.merges.push(Merges {
                    commands: vec![command],
                    expected: Vec::new(),
                }),
            }
        } else if let Some(merges) = merges {
            merges.expected.push(line);
        } else if let Some((_, lines)) = case.files.last_mut() {
            lines.push(line);
        }
    }
    cases
}

/// Returns a line as bytes, and replaces `<hex ff 00*4096>` by the bytes that it lists.
pub(crate) fn bytes(line: &str) -> Vec<u8> {
    let mut parts = line.split("<hex ");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_once('>').unwrap();
        for byte in hex.split(' ') {
            let (byte, times) = byte.split_once('*').unwrap_or((byte, "1"));
            let byte = u8::from_str_radix(byte, 16).unwrap();
            bytes.extend(vec![byte; times.parse().unwrap()]);
        }
        bytes.extend(rest.as_bytes());
    }
    bytes
}

/// Returns the process of a line `@process`, which names what differs from [`Process::new`].
fn process(pid: u32, members: &[&str]) -> Process {
    let mut process = Process::new(pid);
    for member in members {
        match member.split_once('=').unwrap() {
            ("main", value) => process.main = value.parse().unwrap(),
            ("nonce", value) => process.nonce = value.parse().unwrap(),
            ("ring", _) => process.ring = "file",
            ("run", value) => process.run = value.into(),
            ("start", value) => process.start_time = value.parse().unwrap(),
            _ => panic!("{member}"),
        }
    }
    process
}

/// Returns the bytes of the input `trace.<pid>.jsonl`, or of one with another name.
fn input(name: &str, lines: &[&str]) -> Vec<u8> {
    let pid = name.split('.').nth(1).and_then(|pid| pid.parse().ok());
    let pid = pid.unwrap_or_default();
    let mut fragment = Fragment::foreign(pid);
    let mut positions = BTreeMap::<&str, u64>::new();
    let mut block: Option<(&str, u64, Vec<u8>)> = None;
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |nth: usize| words.get(nth).map_or(0, |word| word.parse().unwrap());
        let bytes = match words[0] {
            "@fixture" => fs::read(fixture(words[1])).unwrap(),
            "@process" => stream(&[process(pid, &words[1..]).header(0)]),
            "@anchor" => stream(&[Process::new(pid).anchor(number(1))]),
            "@end" => stream(&[Process::new(pid).end(number(1))]),
            "@block" => {
                block = Some((words[1], number(2), Vec::new()));
                continue;
            }
            "@closed" => {
                let (slot, skipped, content) = block.take().unwrap();
                let position = positions.entry(slot).or_default();
                let from = *position + skipped;
                *position = fragment.block(slot.parse().unwrap(), from, &content);
                continue;
            }
            _ => [&bytes(line)[..], b"\n"].concat(),
        };
        match &mut block {
            Some((_, _, content)) => content.extend(bytes),
            None => _ = fragment.raw(&bytes),
        }
    }
    fragment.bytes
}

impl Case<'_> {
    /// Writes the fragments into a run, and other inputs next to it.
    fn dir(&self) -> RunDir {
        let dir = RunDir::new();
        for (name, lines) in &self.files {
            let folder = match name.starts_with("trace.") {
                true => dir.fragments(),
                false => dir.path().to_owned(),
            };
            let mut bytes = input(name, lines);
            if name.ends_with(".gz") {
                bytes = packed(&bytes);
            }
            fs::write(folder.join(name), bytes).unwrap();
        }
        dir
    }

    /// Returns the outcome of a merge, with all that `expected` asks for. Returns `None` if only Perfetto knows and cannot be set up.
    fn outcome(&self, command: &str, expected: &[&str]) -> Option<String> {
        let dir = self.dir();
        let ended = |report: &str| {
            let mut merge = trace_merge();
            merge.args(command.split(' ')).current_dir(dir.path());
            Ended::of(merge.args(["--report", report, "-o", "out.json"]))
        };
        let json = ended("json");
        if json.code != 0 {
            return Some(format!("code {}\n{}", json.code, json.stderr));
        }
        let bytes = fs::read(dir.path().join("out.json")).unwrap();
        let (report, text) = (json.report(), String::from_utf8(bytes.clone()).unwrap());
        // Whatever is shown of it, the whole trace is valid JSON.
        Trace::parse(&bytes);
        let mut found = Vec::new();
        for line in expected {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "report" => {
                    let place = rest.split(' ').next().unwrap();
                    let value = report.0.pointer(place).unwrap_or(&serde_json::Value::Null);
                    found.push(format!("report {place} {value}"));
                }
                "says" => {
                    let said = ended("text").stderr;
                    let is_said = said.lines().any(|line| line.trim() == rest);
                    found.push(format!("says {}", if is_said { rest } else { &said }));
                }
                "perfetto" => {
                    let rows = query_bytes(self.name, &bytes, &[ERRORS, rest])?;
                    found.push((*line).to_owned());
                    found.extend(rows.iter().flatten().map(|row| format!("row {row}")));
                }
                _ => {}
            }
        }
        for (file, offset, kind) in report.damage() {
            found.push(format!("damage {file} {offset} {kind}"));
        }
        let repaired = report.0["repaired_by_kind"].as_object();
        for (kind, count) in repaired.into_iter().flatten() {
            found.push(format!("repaired {kind} {count}"));
        }
        let has_names = expected.contains(&"names");
        found.extend(has_names.then(|| "names".to_owned()));
        let events = text.lines().skip(1).map(|line| line.trim_end_matches(','));
        let is_shown =
            |line: &&str| line.starts_with('{') && (has_names || !line.starts_with(r#"{"ph":"M""#));
        found.extend(events.filter(is_shown).map(str::to_owned));
        Some(found.join("\n") + "\n")
    }

    /// Returns the outcomes that are not as expected. A case without a merge is compared with the naive reader.
    fn check(&self) -> Vec<String> {
        if self.merges.is_empty() {
            fuzzed::check(&|| self.dir(), self.name);
        }
        let mut unexpected = Vec::new();
        for Merges { commands, expected } in &self.merges {
            let whole = expected.join("\n") + "\n";
            for command in commands {
                let found = self.outcome(command, expected);
                let found = found.filter(|found| found.trim_end() != whole.trim_end());
                unexpected
                    .extend(found.map(|found| format!("=== {}\n$ {command}\n{found}", self.name)));
            }
        }
        unexpected
    }
}

#[test]
fn merges_give_what_their_cases_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let entries = fs::read_dir(folder).unwrap();
    let read = |entry: fs::DirEntry| fs::read_to_string(entry.path()).unwrap();
    let texts: Vec<String> = entries.map(|entry| read(entry.unwrap())).collect();
    let cases: Vec<Case> = texts.iter().flat_map(|text| parse(text)).collect();
    let unexpected: Vec<String> = cases.par_iter().flat_map_iter(Case::check).collect();
    assert!(unexpected.is_empty(), "found:\n{}", unexpected.join("\n"));
}
