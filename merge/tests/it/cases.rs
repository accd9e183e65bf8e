//! Runs the commands that text files in `tests/cases` list, and compares their results with the
//! expected ones there. The README there explains the form. `UPDATE_GOLDEN=1` rewrites the files.

use crate::foreign::fixture;
use crate::invocation::{Ended, RunDir, packed, trace_merge};
use crate::perfetto::{ERRORS, query_bytes};
use crate::trace::{Trace, whole};
use crate::usage::mkfifo;
use crate::{fuzzed, output, runs, segments, settle};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Creates the run named in a line `@run`.
fn named_run(name: &str) -> RunDir {
    let (kind, details) = name.split_once(' ').unwrap_or((name, ""));
    let mut numbers = details.split(' ').map_while(|word| word.parse().ok());
    match kind {
        "spans" => output::run(numbers.next().unwrap()),
        "runs" => runs::three_runs(),
        "segments" => segments::run(numbers.map(|number| u32::try_from(number).unwrap())),
        "killed" => settle::killed_in(details != "before a boot", details != "in a container"),
        _ => panic!("no run is called {name:?}"),
    }
}

/// Returns a line as bytes, and replaces `<hex ff 00*4096>` with the bytes that it lists.
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

/// Returns the process of a line `@process`, which lists the differences from [`Process::new`].
fn process(pid: u32, members: &[&str]) -> Process {
    let mut process = Process::new(pid);
    for member in members {
        match member.split_once('=').unwrap() {
            ("main", value) => process.main = value.parse().unwrap(),
            ("offset", value) => process.offset_ns = value.parse().unwrap(),
            ("nonce", value) => process.nonce = value.parse().unwrap(),
            ("ring", _) => process.ring = "file",
            ("run", value) => process.run = value.into(),
            ("start", value) => process.start_time = value.parse().unwrap(),
            _ => panic!("{member}"),
        }
    }
    process
}

/// Returns the bytes of an input, which may be `trace.<pid>.jsonl`.
fn input(path: &str, lines: &[&str]) -> Vec<u8> {
    let name = path.rsplit('/').next().unwrap();
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
            "@times" => stream(&vec![words[2]; words[1].parse().unwrap()]),
            "@cut" => {
                fragment.bytes.pop();
                continue;
            }
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
    match name.ends_with(".gz") {
        true => packed(&fragment.bytes),
        false => fragment.bytes,
    }
}

/// Keys of `otherData`, and the keys of the report with the same values.
const SHARED_KEYS: [(&str, &str); 4] = [
    ("base_ns", "base_ns"),
    ("damage", "damage_by_kind"),
    ("lost_events", "lost_events"),
    ("repaired", "repaired_by_kind"),
];

/// Identity and time of change of each file, by path.
type Files = BTreeMap<PathBuf, (u64, SystemTime)>;

fn list(folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = path.symlink_metadata().unwrap();
        if data.is_dir() {
            list(&path, files);
        } else if data.is_file() {
            files.insert(path, (data.ino(), data.modified().unwrap()));
        }
    }
}

struct Case {
    run: RunDir,
    /// Working directory of commands that refer to the run as `~`, and output folder of
    /// [`Case::merged`].
    elsewhere: TempDir,
}

impl Case {
    fn new(run: RunDir) -> Case {
        Case {
            run,
            elsewhere: tempfile::tempdir().unwrap(),
        }
    }

    /// Adds a file, `folder/`, `path -> target` or the pipe `path |`.
    fn add(&self, name: &str, lines: &[&str]) {
        let (name, kind) = name.split_once(' ').unwrap_or((name, ""));
        let path = self.run.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match kind.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None if kind == "|" => mkfifo(&path),
            None if name.ends_with('/') => fs::create_dir(path).unwrap(),
            None => fs::write(path, input(name, lines)).unwrap(),
        }
    }

    fn files(&self) -> Files {
        let mut files = Files::new();
        list(self.run.path(), &mut files);
        list(self.elsewhere.path(), &mut files);
        files
    }

    /// Returns everything that the program prints and writes.
    fn printed_and_written(&self, line: &str) -> String {
        let mut command = trace_merge();
        command.current_dir(self.elsewhere.path());
        let folder = self.run.path().to_str().unwrap();
        let is_variable = |name: &str| name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'_'));
        for word in arguments(line) {
            let word = word.replace('~', folder);
            match word.split_once('=') {
                Some((name, value)) if is_variable(name) => command.env(name, value),
                _ => command.arg(&word),
            };
        }
        let before = self.files();
        let ended = Ended::run(&mut command);
        let after = self.files();
        let mut text = ended.stderr;
        if ended.code != 0 {
            text.insert_str(0, &format!("exit {}\n", ended.code));
        }
        if !ended.stdout.is_empty() {
            writeln!(text, "stdout: {}", content(&ended.stdout)).unwrap();
        }
        let is_changed = |(path, file): &(&PathBuf, _)| before.get(*path) != Some(*file);
        for (path, _) in after.iter().filter(is_changed) {
            let is_trace = path.extension().is_some_and(|end| end != "jsonl");
            let found = is_trace.then(|| content(&fs::read(path).unwrap()));
            let found = found.unwrap_or("changed".to_owned());
            writeln!(text, "{}: {found}", path.display()).unwrap();
        }
        for path in before.keys().filter(|path| !after.contains_key(*path)) {
            writeln!(text, "{} is gone", path.display()).unwrap();
        }
        let cores = std::thread::available_parallelism().unwrap();
        text.replace(folder, "~")
            .replace(self.elsewhere.path().to_str().unwrap(), ".")
            .replace(&format!("using only {}", 4 * cores.get()), "using only N")
            .replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }

    /// Returns the events of a merge, and everything that `expected` asks for. Returns `None` if
    /// that needs Perfetto and it cannot be set up.
    fn merged(&self, line: &str, expected: &[&str]) -> Option<String> {
        let output = self.elsewhere.path().join("out.json");
        let ended = |report: &str| {
            let mut merge = trace_merge();
            merge.args(arguments(line)).current_dir(self.run.path());
            Ended::run(merge.args(["--report", report, "-o"]).arg(&output))
        };
        let json = ended("json");
        if json.code != 0 {
            return Some(format!("exit {}\n{}", json.code, json.stderr));
        }
        let bytes = fs::read(&output).unwrap();
        let (report, text) = (json.report(), String::from_utf8(bytes.clone()).unwrap());
        // Even if only a part of it is compared, the whole trace is valid JSON, and its `otherData`
        // agrees with the report.
        let trace = Trace::parse(&bytes);
        let other_data = &trace.document["otherData"];
        for (key, report_key) in SHARED_KEYS {
            let agrees = other_data[key] == report.0[report_key] || other_data[key].is_null();
            assert!(agrees, "{line}: {key}: {other_data}");
        }
        let mut found = Vec::new();
        for line in expected.iter().map(|line| line.trim_start()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "report" | "trace" => {
                    let pointer = rest.split(' ').next().unwrap();
                    let document = [&trace.document, &report.0][usize::from(word == "report")];
                    let value = document.pointer(pointer).unwrap_or(&Value::Null);
                    found.push(format!("{word} {pointer} {value}"));
                }
                "says" => {
                    let printed = ended("text").stderr;
                    let is_printed = printed.lines().any(|line| line.trim() == rest);
                    found.push(format!("says {}", if is_printed { rest } else { &printed }));
                }
                "perfetto" => {
                    let rows = query_bytes("cases", &bytes, &[ERRORS, rest])?;
                    found.push(line.to_owned());
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
        let has_names = expected.contains(&"  names");
        found.extend(has_names.then(|| "names".to_owned()));
        let events = text.lines().skip(1).map(|line| line.trim_end_matches(','));
        let is_shown =
            |line: &&str| line.starts_with('{') && (has_names || !line.starts_with(r#"{"ph":"M""#));
        found.extend(events.filter(is_shown).map(str::to_owned));
        Some(found.join("\n"))
    }

    /// Returns the result of a command, in the form of the case files.
    fn outcome(&self, command: &str, expected: &[&str]) -> String {
        let outcome = match command.split_at(1) {
            ("$", line) => Some(self.printed_and_written(line)),
            (_, line) => self.merged(line, expected),
        };
        let indented = |text: String| {
            let lines = text.lines().filter(|line| !line.is_empty());
            lines.map(|line| format!("  {line}\n")).collect()
        };
        outcome.map_or_else(|| expected.join("\n") + "\n", indented)
    }
}

/// Splits a line at spaces, except for spaces in quotes.
fn arguments(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    let words = parts.map(|(nth, part)| match nth % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.flatten().collect()
}

/// Returns the tracks of a trace with the names of their events, a report with at most three
/// damages, or any other text as it is.
fn content(bytes: &[u8]) -> String {
    let mut unpacked = Vec::new();
    let mut member = flate2::bufread::GzDecoder::new(bytes);
    if member.read_to_end(&mut unpacked).is_ok() {
        return format!("packed {}", content(&unpacked));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(document)) if document.contains_key("traceEvents") => {
            track_list(&Trace::parse(bytes))
        }
        Ok(Value::Object(mut report)) => {
            if let Some(Value::Array(damage)) = report.get_mut("damage") {
                let left_out = damage.len().saturating_sub(3);
                damage.truncate(3);
                damage.extend((left_out > 0).then(|| format!("and {left_out} more").into()));
            }
            format!("{:#}", Value::Object(report))
        }
        _ => String::from_utf8_lossy(bytes).trim_end().to_owned(),
    }
}

fn track_list(trace: &Trace) -> String {
    let (processes, threads) = (trace.process_names(), trace.thread_names());
    let mut tracks: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for event in trace.shown() {
        let pid = event["pid"].to_string();
        let thread = threads.get(&format!("{pid}/{}", event["tid"]));
        let named = processes.get(&pid).into_iter().chain(thread);
        let track = named.cloned().collect::<Vec<_>>().join(" | ");
        let cut = if whole(event).1 { " (cut)" } else { "" };
        let name = format!("{}{cut}", event["name"].as_str().unwrap_or(""));
        *tracks.entry(track).or_default().entry(name).or_default() += 1;
    }
    let times = |(name, count): (&String, &usize)| match count {
        1 => name.clone(),
        _ => format!("{name} × {count}"),
    };
    let track = |(track, names): (&String, &BTreeMap<String, usize>)| {
        let names = names.iter().map(times).collect::<Vec<_>>().join(", ");
        format!("[{track}] {names}")
    };
    tracks.iter().map(track).collect::<Vec<_>>().join(" ")
}

fn is_command(line: &str) -> bool {
    line.starts_with(['$', '%'])
}

/// Returns the text of a case with the results of its commands. A case without a command is
/// compared with the naive reader.
fn replay(text: &str) -> String {
    let mut lines = text.split('\n').peekable();
    let mut found = format!("{}\n", lines.next().unwrap());
    let (mut case, mut files, mut has_command) = (Case::new(RunDir::new()), Vec::new(), false);
    while let Some(line) = lines.next() {
        writeln!(found, "{line}").unwrap();
        let mut next = |is_next: fn(&str) -> bool| {
            let lines = std::iter::from_fn(|| lines.next_if(|line| is_next(line)));
            lines.collect::<Vec<&str>>()
        };
        if let Some(run) = line.strip_prefix("@run ") {
            case = Case::new(named_run(run));
        } else if let Some(path) = line.strip_prefix("--- ") {
            let content = next(|line| {
                !is_command(line) && !line.starts_with('#') && !line.starts_with("--- ")
            });
            found.extend(content.iter().map(|line| format!("{line}\n")));
            case.add(path, &content);
            files.push((path, content));
        } else if is_command(line) {
            has_command = true;
            let others = next(is_command);
            let expected = next(|line| line.starts_with("  "));
            found.extend(others.iter().map(|line| format!("{line}\n")));
            let commands = [&[line], &others[..]].concat();
            let outcomes = commands.iter().map(|line| case.outcome(line, &expected));
            let mut outcomes: Vec<String> = outcomes.collect();
            outcomes.dedup();
            found.extend(outcomes);
        }
    }
    if !has_command {
        let run = || {
            let case = Case::new(RunDir::new());
            files.iter().for_each(|(path, lines)| case.add(path, lines));
            case.run
        };
        fuzzed::check(&run, text);
    }
    found.pop();
    found
}

#[test]
fn commands_have_the_results_of_their_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files = Files::new();
    list(&folder, &mut files);
    files.retain(|path, _| path.extension().is_some_and(|end| end == "txt"));
    let unexpected = files.par_iter().map(|(path, _)| {
        let expected = fs::read_to_string(path).unwrap();
        let cases: Vec<&str> = expected.split("\n=== ").collect();
        let found: Vec<String> = cases.par_iter().map(|case| replay(case)).collect();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(path, found.join("\n=== ")).unwrap();
            return String::new();
        }
        let pairs = found.into_iter().zip(cases);
        let different = pairs.filter(|(found, case)| found != case);
        different
            .map(|(found, _)| format!("=== {found}\n"))
            .collect()
    });
    let unexpected: String = unexpected.collect();
    assert!(unexpected.is_empty(), "found:\n{unexpected}");
}
