//! Checks the report of each trace in `tests/traces`.
//!
//! A case consists of a name after `==`, its inputs, and after `--` one line per expectation. A first line `with` sets
//! options: `concurrency`, `by=thread`, `slo=e2e=1s`, and `serving` for serving time instead of the whole run.
//! `request=r`, `step=3` and `at=5ms` check the details of these. `merged` also checks the trace that a merge creates
//! from the inputs. The first input is a trace in the format of [`events`]. Events after `npu 4711 0` belong to the
//! groups of that process's [`npu`] 0. Further inputs follow `+ trace`, `+ fixture` with a path, or `+ recorded` with a
//! host whose processes recorded these events.
//!
//! ```text
//! idle.0.causes.cause=worker ns=110000    members of a JSON value, here of the element with this cause
//! device.0.@process pid=0                 members of the process whose number is in `process`
//! device len=1                            length of a list
//! findings.0 evidence^='in a step'        start of a text
//! screen: no span has                     text on the screen with all tables, where `⏎` stands for a line break
//! no screen: application                  text that is not on the screen
//! ```

use crate::devices::npu;
use crate::events::{events, unquoted, value, words};
use crate::reports::{fixture, report_from};
use crate::screen::{fits, overfull};
use crate::sql::{fragments, move_to_host};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trace_merge::{Options, Output, Progress, parse_duration};
use trace_report::{
    DetailTarget, NamesBy, ReportOptions, RunReport, parse_slo, read_detail, screen,
};

const FILES: [&str; 11] = [
    include_str!("../traces/crash.txt"),
    include_str!("../traces/details.txt"),
    include_str!("../traces/devices.txt"),
    include_str!("../traces/fixtures.txt"),
    include_str!("../traces/idle.txt"),
    include_str!("../traces/names.txt"),
    include_str!("../traces/prefixes.txt"),
    include_str!("../traces/requests.txt"),
    include_str!("../traces/serving.txt"),
    include_str!("../traces/settings.txt"),
    include_str!("../traces/verdict.txt"),
];

/// A trace, and the expectations of its report.
pub(crate) struct Case {
    name: &'static str,
    options: ReportOptions,
    is_merged: bool,
    detail: Option<DetailTarget>,
    /// Events of the first input.
    pub(crate) events: Vec<Value>,
    /// Kind and text of each further input.
    others: Vec<(&'static str, &'static str)>,
    expected: &'static str,
}

fn cases() -> impl Iterator<Item = Case> {
    let cases = FILES.iter().flat_map(|file| file.split("== ").skip(1));
    cases.map(|case| {
        let (name, case) = case.split_once('\n').unwrap();
        let (text, expected) = case.split_once("\n--\n").unwrap();
        let (with, text) = match text.strip_prefix("with ") {
            Some(text) => text.split_once('\n').unwrap(),
            None => ("", text),
        };
        let mut inputs = text.split("+ ");
        let events = with_npus(inputs.next().unwrap());
        let others = inputs.map(|input| input.split_once('\n').unwrap_or((input, "")));
        let case = Case {
            name,
            options: ReportOptions {
                whole: true,
                ..ReportOptions::default()
            },
            is_merged: false,
            detail: None,
            events,
            others: others.collect(),
            expected,
        };
        with.split_whitespace().fold(case, Case::with)
    })
}

fn with_npus(text: &str) -> Vec<Value> {
    let mut parts = text.split("npu ");
    let mut lines = events(parts.next().unwrap());
    for part in parts {
        let (head, text) = part.split_once('\n').unwrap();
        let (pid, number) = head.split_once(' ').unwrap_or((head, ""));
        lines.extend(npu(pid.parse().unwrap(), number.parse().ok(), text));
    }
    lines
}

/// Returns the case whose name starts with `name`.
pub(crate) fn case(name: &str) -> Case {
    cases().find(|case| case.name.starts_with(name)).unwrap()
}

impl Case {
    /// Adds an option.
    fn with(mut self, word: &str) -> Case {
        let ns = |text| i64::try_from(parse_duration(text).unwrap().as_nanos()).unwrap();
        match word.split_once('=') {
            None if word == "merged" => self.is_merged = true,
            None if word == "serving" => self.options.whole = false,
            None if word == "concurrency" => self.options.concurrency = true,
            Some(("by", by)) => self.options.names_by = NamesBy::from_str(by, false).unwrap(),
            Some(("slo", slo)) => self.options.slo = Some(parse_slo(slo).unwrap()),
            Some(("request", id)) => self.detail = Some(DetailTarget::Request(id.to_owned())),
            Some(("step", step)) => self.detail = Some(DetailTarget::Step(step.parse().unwrap())),
            Some(("at", at)) => self.detail = Some(DetailTarget::Time(ns(at))),
            _ => panic!("{word}"),
        }
        self
    }

    /// Writes the inputs and returns their paths. Recordings go into the folder `run`.
    pub(crate) fn write(&self, folder: &Path) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let write_trace = |nth: usize, events: &[Value]| {
            // The name contains a comma, which also separates the parts of labels.
            let path = folder.join(format!("trace {nth}, a.json"));
            let mut trace = json!({ "traceEvents": events });
            if self.others.iter().any(|(kind, _)| *kind == "trace") {
                trace["baseTimeNanoseconds"] = json!(1_751_410_836_000_000_000_i64);
            }
            std::fs::write(&path, trace.to_string()).unwrap();
            path
        };
        if !self.events.is_empty() {
            paths.push(write_trace(0, &self.events));
        }
        let run = folder.join("run");
        for (nth, (kind, text)) in self.others.iter().enumerate() {
            match kind.split_once(' ').unwrap_or((kind, "")) {
                ("fixture", name) => paths.push(fixture(name)),
                ("trace", _) => paths.push(write_trace(nth + 1, &events(text))),
                (_, host) => {
                    let to = run.join("fragments");
                    std::fs::create_dir_all(&to).unwrap();
                    for (pid, mut fragment) in fragments(&events(text)) {
                        if !host.is_empty() {
                            move_to_host(&mut fragment, host);
                        }
                        fragment.write(&to, &format!("trace.{pid}{nth}.jsonl"));
                    }
                }
            }
        }
        paths.extend(run.exists().then_some(run));
        paths
    }

    fn check_all(&self) {
        let folder = tempfile::tempdir().unwrap();
        let paths = self.write(folder.path());
        if let Some(target) = &self.detail {
            return self.check_detail(paths, target);
        }
        self.check(&report_from(&paths, &self.options));
        if self.is_merged {
            let merged = folder.path().join("merged.json");
            let options = Options {
                output: Output::File(merged.clone()),
                settle: false,
                ..Options::new(paths)
            };
            trace_merge::merge(&options).unwrap();
            self.check(&report_from(&[merged], &self.options));
        }
    }

    /// Checks the details, and that they fit on a screen.
    fn check_detail(&self, paths: Vec<PathBuf>, target: &DetailTarget) {
        let (inputs, progress) = (Options::new(paths), Progress::default());
        let detail = read_detail(&inputs, &self.options, &progress, target).unwrap();
        let screen = screen::detail_text(&detail, "RUN");
        let columns = screen.lines().map(|line| line.chars().count()).max();
        assert!(
            screen.lines().count() <= 40 && columns <= Some(100),
            "{screen}"
        );
        let json = serde_json::to_value(&detail).unwrap();
        let kinds = json.as_object().unwrap().values();
        kinds.for_each(|json| self.check_json(json, &screen));
    }

    /// Checks a report of the inputs.
    pub(crate) fn check(&self, report: &RunReport) {
        let json = serde_json::to_value(report).unwrap();
        for report in [report, &overfull(report)] {
            fits(&screen::brief(report, screen::ScreenOptions::default()));
        }
        self.check_json(&json, &screen::text(report));
    }

    fn check_json(&self, json: &Value, screen: &str) {
        let lines = self.expected.lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let name = self.name;
            let has = |words: &str| screen.contains(&words.replace('⏎', "\n"));
            if let Some(words) = line.strip_prefix("screen: ") {
                assert!(has(words), "{name}: {line}: {screen}");
            } else if let Some(words) = line.strip_prefix("no screen: ") {
                assert!(!has(words), "{name}: {line}: {screen}");
            } else {
                has_members(json, line, name);
            }
        }
    }
}

fn has_members(json: &Value, line: &str, name: &str) {
    let words = words(line);
    assert!(words.len() > 1, "{name}: {line}");
    let found = at_path(json, words[0]);
    for member in &words[1..] {
        let (key, expected) = member.split_once('=').unwrap();
        let expected = value(expected);
        let (is_same, found) = match (key, key.strip_suffix('^')) {
            ("len", _) => {
                let len = json!(found.as_array().map(Vec::len));
                (len == expected, len)
            }
            (_, Some(key)) => {
                let [text, begin] = [&found[key], &expected].map(|text| text.as_str().unwrap());
                (text.starts_with(begin), json!(text))
            }
            _ => {
                let found = at_path(found, key);
                (is_same(found, &expected), found.clone())
            }
        };
        assert!(is_same, "{name}: {line}: {key} is {found}");
    }
}

/// Returns true if values are equal, or if numbers differ by no more than rounding.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs(),
        _ => found == expected,
    }
}

fn at_path<'v>(json: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(json, |value, step| {
        if let Some((key, expected)) = step.split_once('=') {
            let mut elements = value.as_array().unwrap().iter();
            let element = elements.find(|element| element[key] == unquoted(expected));
            return element.unwrap_or(&Value::Null);
        }
        match (step.strip_prefix('@'), step.parse::<usize>()) {
            (Some(key), _) => at_path(&json["recorded"]["processes"], &value[key].to_string()),
            (_, Ok(nth)) => &value[nth],
            (_, Err(_)) => &value[step],
        }
    })
}

#[test]
fn reports_meet_the_expectations() {
    let mut checked = 0;
    for case in cases() {
        case.check_all();
        checked += 1;
    }
    let lines = FILES.iter().flat_map(|file| file.lines());
    assert_eq!(checked, lines.filter(|line| *line == "--").count());
}
