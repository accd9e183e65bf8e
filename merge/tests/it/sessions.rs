//! Runs the commands in `tests/golden/sessions.txt`, and compares exactly the output and files of each with those written there.
//!
//! `UPDATE_GOLDEN=1` writes the file anew. A session begins with `##` and the run that it is about ([`begin`]); `+` adds a file, a link or a pipe, and `$`
//! runs the program. `~` is the directory of the run. Indented below a command are its exit code if it is not 0, its words without empty lines, and the files that it wrote.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::trace::{Trace, whole};
use crate::usage::mkfifo;
use crate::{output, report, runs, segments, settle, window};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Makes a run by its name in the file.
fn begin(name: &str) -> RunDir {
    let (kind, details) = name.split_once(' ').unwrap_or((name, ""));
    let mut numbers = details.split(' ').map_while(|word| word.parse().ok());
    match kind {
        "empty" => RunDir::new(),
        "spans" => output::run(numbers.next().unwrap()),
        "hosts" => window::two_hosts(),
        "processes" => window::two_processes(),
        "runs" => runs::three_runs(),
        "mixed" => runs::two_in_one_folder(),
        "ring" => runs::with_ring(),
        "phases" => report::of_each_phase(),
        "loss" => report::with_loss(details),
        "segments" => segments::run(numbers.map(|number| u32::try_from(number).unwrap())),
        "killed" => settle::killed_in(details != "before a boot", details != "in a container"),
        _ => panic!("no run is called {name:?}"),
    }
}

/// Identity and time of change of each file, by path.
type Files = BTreeMap<PathBuf, (u64, i64, i64)>;

fn list(folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = path.symlink_metadata().unwrap();
        if data.is_dir() {
            list(&path, files);
        }
        let changed = (data.ino(), data.mtime(), data.mtime_nsec());
        files.insert(path, changed);
    }
}

struct Session {
    run: RunDir,
    /// The working directory of its commands.
    elsewhere: TempDir,
}

impl Session {
    fn new(name: &str) -> Session {
        Session {
            run: begin(name),
            elsewhere: tempfile::tempdir().unwrap(),
        }
    }

    /// Adds `path text`, `path "text with escapes"`, `folder/`, `path -> target` or `path |`.
    fn add(&self, line: &str) {
        let (path, content) = line.split_once(' ').unwrap_or((line, ""));
        let path = self.run.path().join(path);
        let folder = match line.ends_with('/') {
            true => &path,
            false => path.parent().unwrap(),
        };
        fs::create_dir_all(folder).unwrap();
        match content.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None if content == "|" => mkfifo(&path),
            None if line.ends_with('/') => {}
            None => {
                let text = serde_json::from_str(content);
                fs::write(path, text.unwrap_or(content.to_owned())).unwrap();
            }
        }
    }

    fn files(&self) -> Files {
        let mut files = Files::new();
        list(self.run.path(), &mut files);
        list(self.elsewhere.path(), &mut files);
        files
    }

    /// Runs the program, and returns what it led to.
    fn run(&self, line: &str) -> String {
        let mut command = trace_merge();
        command.current_dir(self.elsewhere.path());
        let folder = self.run.path().to_str().unwrap();
        for word in words(line) {
            let word = word.replace('~', folder);
            match word.split_once('=') {
                Some((name, value)) if name.starts_with("SA_PROFILE_") => command.env(name, value),
                _ => command.arg(&word),
            };
        }
        let before = self.files();
        let ended = Ended::of(&mut command);
        let after = self.files();
        let mut text = ended.stderr;
        if ended.code != 0 {
            text.insert_str(0, &format!("exit {}\n", ended.code));
        }
        if !ended.stdout.is_empty() {
            writeln!(text, "stdout: {}", content(&ended.stdout)).unwrap();
        }
        let changed = after.iter().filter(|(path, file)| {
            before.get(*path) != Some(*file) && !path.is_dir() && !path.is_symlink()
        });
        for (path, _) in changed {
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
            .replace(&format!("{} are taken", 4 * cores.get()), "N are taken")
            .replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }
}

/// Words separated by spaces; those in quotes may contain some.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    let words = parts.map(|(nth, part)| match nth % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.flatten().collect()
}

/// The rows of a trace with the names of their events, a report in which lists are short, or another text as it is.
fn content(bytes: &[u8]) -> String {
    let mut unpacked = Vec::new();
    let mut member = flate2::bufread::GzDecoder::new(bytes);
    let bytes = match member.read_to_end(&mut unpacked) {
        Ok(_) => &unpacked[..],
        Err(_) => bytes,
    };
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(document)) if !document.contains_key("traceEvents") => {
            format!("{:#}", shortened(document.into()))
        }
        Ok(Value::Object(_)) => rows(&Trace::parse(bytes)),
        _ => String::from_utf8_lossy(bytes).trim_end().to_owned(),
    }
}

fn shortened(mut value: Value) -> Value {
    match &mut value {
        Value::Array(values) => {
            let left_out = values.len().saturating_sub(3);
            values.truncate(3);
            values.extend((left_out > 0).then(|| format!("and {left_out} more").into()));
            values
                .iter_mut()
                .for_each(|one| *one = shortened(one.take()));
        }
        Value::Object(members) => {
            let members = members.values_mut();
            members.for_each(|one| *one = shortened(one.take()));
        }
        _ => {}
    }
    value
}

fn rows(trace: &Trace) -> String {
    let (processes, threads) = (trace.process_names(), trace.thread_names());
    let mut rows: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for event in trace.shown() {
        let pid = event["pid"].to_string();
        let thread = threads.get(&format!("{pid}/{}", event["tid"]));
        let named = processes.get(&pid).into_iter().chain(thread);
        let row = named.cloned().collect::<Vec<_>>().join(" | ");
        let cut = if whole(event).1 { " (cut)" } else { "" };
        let name = format!("{}{cut}", event["name"].as_str().unwrap_or(""));
        *rows.entry(row).or_default().entry(name).or_default() += 1;
    }
    let times = |(name, count): (&String, &usize)| match count {
        1 => name.clone(),
        _ => format!("{name} × {count}"),
    };
    let row = |(row, names): (&String, &BTreeMap<String, usize>)| {
        let names = names.iter().map(times).collect::<Vec<_>>().join(", ");
        format!("[{row}] {names}")
    };
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_say_and_write_what_they_should() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sessions.txt");
    let expected = fs::read_to_string(&path).unwrap();
    let (mut found, mut session) = (String::new(), None::<Session>);
    for line in expected.lines() {
        if line.starts_with("  ") {
            continue; // what the command before said
        }
        writeln!(found, "{line}").unwrap();
        match (line.split_once(' ').unwrap_or((line, "")), &session) {
            (("##", name), _) => {
                session = Some(Session::new(name.split(':').next().unwrap()));
            }
            (("+", file), Some(session)) => session.add(file),
            (("$", words), Some(session)) => {
                let said = session.run(words);
                let said = said.lines().filter(|line| !line.is_empty());
                said.for_each(|line| writeln!(found, "  {line}").unwrap());
            }
            _ => assert_eq!(line, "", "no command"),
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &found).unwrap();
        return;
    }
    let mut lines = found.lines().zip(expected.lines());
    let apart = lines.find(|(found, expected)| found != expected);
    assert!(found == expected, "{apart:#?} in\n{found}");
}
