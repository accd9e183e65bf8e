//! Checks what the report has for each trace in `tests/traces`.
//!
//! A case has a name after `==`, then its [`events`], and after `--` a line for each expectation. Events after `npu 4711 0` are of the groups
//! of that process's [`npu`] 0, and `fixture` in their place names a file.
//!
//! ```text
//! idle.0.causes.cause=worker ns=110000    members of a value of the JSON, here of the element whose cause that is
//! device.0.@process pid=0                 members of the process that its `process` names by number
//! device len=1                            the length of a list
//! findings.0 evidence^='in a step'        how a text begins
//! screen: no span has                     words of the screen, in which `⏎` ends a line
//! no screen: application                  words that it does not have
//! ```

use crate::devices::npu;
use crate::events::{events, unquoted, value, words};
use crate::reports::{fixture, of_lines, report};
use serde_json::{Value, json};
use trace_report::{RunReport, screen};

const FILES: [&str; 6] = [
    include_str!("../traces/devices.txt"),
    include_str!("../traces/fixtures.txt"),
    include_str!("../traces/idle.txt"),
    include_str!("../traces/names.txt"),
    include_str!("../traces/prefixes.txt"),
    include_str!("../traces/requests.txt"),
];

/// A trace, and what its report must have.
pub(crate) struct Case {
    name: &'static str,
    fixture: Option<&'static str>,
    pub(crate) events: Vec<Value>,
    expected: &'static str,
}

fn cases() -> impl Iterator<Item = Case> {
    let cases = FILES.iter().flat_map(|file| file.split("== ").skip(1));
    cases.map(|case| {
        let (name, case) = case.split_once('\n').unwrap();
        let (text, expected) = case.split_once("\n--\n").unwrap();
        let fixture = text.strip_prefix("fixture ");
        Case {
            name,
            fixture,
            events: with_npus(if fixture.is_none() { text } else { "" }),
            expected,
        }
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

/// Returns the case whose name begins so.
pub(crate) fn case(name: &str) -> Case {
    cases().find(|case| case.name.starts_with(name)).unwrap()
}

impl Case {
    fn report(&self) -> RunReport {
        match self.fixture {
            Some(name) => report(fixture(name)),
            None => of_lines(&self.events),
        }
    }

    /// Checks a report of it.
    pub(crate) fn check(&self, report: &RunReport) {
        let json = serde_json::to_value(report).unwrap();
        let screen = screen::text(report);
        let lines = self.expected.lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let name = self.name;
            let has = |words: &str| screen.contains(&words.replace('⏎', "\n"));
            if let Some(words) = line.strip_prefix("screen: ") {
                assert!(has(words), "{name}: {line}: {screen}");
            } else if let Some(words) = line.strip_prefix("no screen: ") {
                assert!(!has(words), "{name}: {line}: {screen}");
            } else {
                has_members(&json, line, name);
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

/// Returns true for equal values, and for numbers that differ by no more than their rounding.
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
fn reports_have_what_is_expected_of_traces() {
    let mut checked = 0;
    for case in cases() {
        case.check(&case.report());
        checked += 1;
    }
    let lines = FILES.iter().flat_map(|file| file.lines());
    assert_eq!(checked, lines.filter(|line| *line == "--").count());
}
