//! The report of a check: rules, counts and places.
//!
//! In: a rule and an offset for each problem. Out: the report, as data and as text. Only this module knows how many places are listed, and how the text at each
//! place is quoted.

use sa_format::visible;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace_event::damage::path_text;
use trace_event::json::Scanner;

/// Maximum number of places that are listed for each rule.
const PLACES: usize = 5;
/// Maximum number of characters of a quoted text.
const WIDTH: usize = 120;

/// Defines each rule once: its name in code, its name in reports, and its consequence for a viewer.
macro_rules! rules {
    ($($rule:ident $name:literal $meaning:literal)*) => {
        /// A rule that a trace breaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $meaning] $rule,)*
        }

        impl Rule {
            /// Returns the name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name,)* }
            }

            /// Returns the consequence for a viewer.
            pub fn meaning(self) -> &'static str {
                match self { $(Rule::$rule => $meaning,)* }
            }
        }
    };
}

// The order matters: up to `PidTwice` a viewer loads nothing of the file, and after `Overlap` only the counterpart of a valid event is missing.
rules! {
    NotJson "not_json" "text that is not JSON: viewers load nothing of the file, and the rest was not checked"
    NotUtf8 "not_utf8" "bytes that are not UTF-8: JSON readers refuse the file, which was not checked"
    NestedJson "nested_json" "an event with arrays and objects inside more than 126 others: many JSON readers refuse the file"
    NotATrace "not_a_trace" "JSON that is not a trace: viewers load nothing of the file, or show nothing"
    BadNumber "bad_number" "a number that exceeds a double, such as 1e999: Perfetto loads nothing of the file"
    BadTime "bad_time" "a ts, dur, tts or tdur that is not a number: Perfetto loads nothing of the file"
    BadEscape "bad_escape" "a text that Perfetto cannot read: it ends with a backslash, or has an escaped surrogate (\\ud83e) and an escaped quote. Perfetto loads nothing of the file"
    PidTwice "pid_twice" "an event with two pids, a text and then a number: Perfetto loads nothing of the file"
    CutOff "cut_off" "the end of the file is missing: viewers load nothing, except that Perfetto loads the complete events of an array without an object around it"
    BadPhase "bad_phase" "events without a phase (ph) that viewers know are dropped"
    NoTime "no_time" "events without a ts, and complete spans (X) without a dur, are dropped"
    NegativeTime "negative_time" "events whose ts or dur is below 0, or exceeds 64 bits in nanoseconds, are dropped or shown wrongly"
    BadThread "bad_thread" "a pid or tid that is negative or exceeds 32 bits becomes 0: events are shown on the track of another thread"
    BadId "bad_id" "async events (b, n, e) and arrows (s, t, f) without a valid id are dropped"
    Overlap "overlap" "complete spans (X) that overlap another one of their thread, and are not inside it, are dropped"
    EndWithoutBegin "end_without_begin" "ends of spans (E, e) are dropped if no span (B, b) of the same track, name and category is open"
    MisplacedEnd "misplaced_end" "spans (B, E, b, e) that begin inside another span and end after it are cut short"
    FlowTwice "flow_twice" "arrows that start a second time with the same id, category and name: the second start is dropped"
    FlowWithoutStart "flow_without_start" "steps and ends of arrows without an earlier start with the same id, category and name are dropped"
    FlowWithoutSpan "flow_without_span" "arrows are dropped if their thread has had no span, or without \"bp\":\"e\" at the end, if no span follows"
}

impl Rule {
    /// Returns true if the event itself is valid, but the recording lacks its counterpart or has it twice. A merge does not change such events.
    pub fn lacks_counterpart(self) -> bool {
        self > Rule::Overlap
    }

    /// Returns true if a viewer may refuse to load the whole file because this rule is broken. For
    /// [`Rule::CutOff`], which returns false, it depends on the form of the trace.
    fn is_fatal(self) -> bool {
        self < Rule::CutOff
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Occurrence {
    /// Byte offset in the text.
    pub offset: u64,
    /// Text at that offset, or what was expected and found there.
    pub what: String,
}

/// A broken rule and its places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Consequence for a viewer.
    pub meaning: &'static str,
    /// Number of events that break the rule.
    pub count: u64,
    /// First 5 places.
    pub places: Vec<Occurrence>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Version of this crate.
    pub version: &'static str,
    /// The trace.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
    /// Length of its text in bytes.
    pub bytes: u64,
    /// False if a viewer may load nothing of it.
    pub is_loaded: bool,
    /// Number of events that were checked.
    pub events: u64,
    /// The rules that it breaks.
    pub findings: Vec<Finding>,
}

/// The findings so far.
pub(crate) struct Findings<'a> {
    text: &'a [u8],
    by_rule: BTreeMap<Rule, Finding>,
    pub(crate) is_loaded: bool,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Findings<'a> {
        Findings {
            text,
            by_rule: BTreeMap::new(),
            is_loaded: true,
        }
    }

    /// Adds an event that breaks a rule.
    pub(crate) fn add(&mut self, rule: Rule, offset: u64) {
        self.add_many(rule, 1, offset);
    }

    /// Adds several events. The first one is at `offset`.
    pub(crate) fn add_many(&mut self, rule: Rule, count: u64, offset: u64) {
        self.insert(rule, count, offset, |text| quote(text, offset));
    }

    /// Reports that the event at byte `offset` breaks `rule` because it clashes with the one at
    /// byte `other`. The message quotes both.
    pub(crate) fn add_clash(&mut self, rule: Rule, offset: u64, other: u64) {
        self.insert(rule, 1, offset, |text| {
            let [what, with] = [offset, other].map(|offset| quote(text, offset));
            format!("{what}, clashes with {with} at byte {other}")
        });
    }

    /// Adds a problem of the text.
    pub(crate) fn add_text(&mut self, rule: Rule, offset: u64, problem: &str) {
        let problem = match problem.char_indices().nth(2 * WIDTH) {
            Some((cut, _)) => format!("{}…", &problem[..cut]),
            None => problem.to_owned(),
        };
        self.insert(rule, 1, offset, |text| {
            format!("{problem}, found {}", quote(text, offset))
        });
    }

    /// Counts events. Calls `what` with the text if the place will be listed.
    fn insert(&mut self, rule: Rule, count: u64, offset: u64, what: impl Fn(&[u8]) -> String) {
        self.is_loaded &= !rule.is_fatal();
        let finding = self.by_rule.entry(rule).or_insert_with(|| Finding {
            rule,
            meaning: rule.meaning(),
            count: 0,
            places: Vec::new(),
        });
        finding.count += count;
        // Tracks are checked one after the other, so places are not found in the order of their offsets.
        let places = &mut finding.places;
        let index = places.partition_point(|earlier| earlier.offset <= offset);
        if index < PLACES {
            let what = what(self.text);
            places.insert(index, Occurrence { offset, what });
            places.truncate(PLACES);
        }
    }

    pub(crate) fn report(self, file: &Path, events: u64) -> CheckReport {
        CheckReport {
            version: env!("CARGO_PKG_VERSION"),
            file: file.to_owned(),
            bytes: self.text.len() as u64,
            is_loaded: self.is_loaded,
            events,
            findings: self.by_rule.into_values().collect(),
        }
    }
}

/// Quotes the beginning of the JSON value at `offset`, or of the line if there is no value. Invisible characters are spelled out.
fn quote(text: &[u8], offset: u64) -> String {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) else {
        return "the end of the text".to_owned();
    };
    // A character has up to 4 bytes.
    let rest = &rest[..rest.len().min(4 * WIDTH)];
    let mut scanner = Scanner::new(rest, 0);
    let is_value = scanner.value(1).is_some();
    let end = if is_value { scanner.at } else { rest.len() };
    let front = String::from_utf8_lossy(&rest[..end]);
    let line = front.split('\n').next().unwrap_or_default();
    match line.char_indices().nth(WIDTH) {
        Some((cut, _)) => format!("{}…", visible(&line[..cut])),
        None => visible(line).into_owned(),
    }
}

impl CheckReport {
    /// Returns true if no rule is broken.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns how often a rule is broken.
    pub fn count(&self, rule: Rule) -> u64 {
        let found = self.findings.iter().find(|finding| finding.rule == rule);
        found.map_or(0, |finding| finding.count)
    }

    /// Returns the report as text, for a terminal.
    pub fn text(&self) -> String {
        let problems = match self.findings.iter().map(|finding| finding.count).sum() {
            0 => "no problem found".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        let loaded = if self.is_loaded {
            ""
        } else {
            ", a viewer may load nothing of it"
        };
        let (file, events) = (self.file.display(), self.events);
        let mut text = format!("{file}: {events} events, {problems}{loaded}\n");
        for Finding {
            rule,
            meaning,
            count,
            places,
        } in &self.findings
        {
            text += &format!("{}: {count}\n  {meaning}\n", rule.name());
            for place in places {
                text += &format!("  at byte {}: {}\n", place.offset, place.what);
            }
            match count.saturating_sub(places.len() as u64) {
                0 => {}
                more => text += &format!("  and {more} more\n"),
            }
        }
        text
    }
}
