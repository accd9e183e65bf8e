//! What was found: how often, where first, and in words.

use super::loose::read;
use super::rule::{Kind, Rule};
use sa_format::visible;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use trace_event::json::{Fields, Scanner};

/// Places remembered of each rule.
const PLACES: usize = 5;
/// Characters shown of a name or number.
const WIDTH: usize = 60;

/// Where something stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Byte offset in the text.
    pub offset: u64,
    /// Number of the event, the first being 0; of what stands between events, that of the next.
    pub event: u64,
}

/// One of the things that viewers would lose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Where it stands.
    #[serde(flatten)]
    pub place: Place,
    /// The event in words; empty for what is none.
    pub what: String,
    /// What it clashes with, and where that stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Box<Loss>>,
}

/// What viewers would lose for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The reason.
    pub rule: Rule,
    /// What it does to the trace.
    pub kind: Kind,
    /// What it means.
    pub meaning: &'static str,
    /// How often.
    pub count: u64,
    /// The first places.
    pub places: Vec<Loss>,
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
    /// Whether Perfetto loads anything of it.
    pub is_loaded: bool,
    /// Events that were looked at.
    pub events: u64,
    /// Spans (X, B, b) among them.
    pub spans: u64,
    /// Spans that would not be shown.
    pub spans_dropped: u64,
    /// What would be lost.
    pub lost: Vec<Finding>,
}

/// How often a rule was broken, and where first: what clashes with what.
type Found = (u64, Vec<(Place, Option<Place>)>);

/// Findings as they come.
pub(super) struct Findings {
    by_rule: BTreeMap<Rule, Found>,
    pub(super) is_loaded: bool,
    /// Whether the trace is an array without an object around it.
    pub(super) is_bare: bool,
    pub(super) spans: u64,
    pub(super) spans_dropped: u64,
}

impl Findings {
    pub(super) fn new() -> Findings {
        Findings {
            by_rule: BTreeMap::new(),
            is_loaded: true,
            is_bare: false,
            spans: 0,
            spans_dropped: 0,
        }
    }

    /// Whether a rule has been broken.
    pub(super) fn is_found(&self, rule: Rule) -> bool {
        self.by_rule.contains_key(&rule)
    }

    pub(super) fn add(&mut self, rule: Rule, place: Place) {
        self.add_many(rule, 1, &[place]);
    }

    pub(super) fn add_many(&mut self, rule: Rule, count: u64, places: &[Place]) {
        let places = places.iter().map(|place| (*place, None));
        self.add_found(rule, count, places);
    }

    /// A span that is dropped, because `other` is in its way.
    pub(super) fn add_overlap(&mut self, place: Place, other: Place) {
        self.spans_dropped += 1;
        self.add_found(Rule::Overlap, 1, [(place, Some(other))].into_iter());
    }

    /// A span that ends where the one around it does.
    pub(super) fn add_cut(&mut self, place: Place, outer: Place) {
        self.add_found(Rule::MisplacedEnd, 1, [(place, Some(outer))].into_iter());
    }

    fn add_found(
        &mut self,
        rule: Rule,
        count: u64,
        places: impl Iterator<Item = (Place, Option<Place>)>,
    ) {
        if count == 0 {
            return;
        }
        self.is_loaded &= match rule {
            Rule::BadTime | Rule::BadNumber | Rule::LastBackslash => self.is_bare,
            Rule::PidTwice
            | Rule::HalfCharacter
            | Rule::CounterEndless
            | Rule::MetadataEndless
            | Rule::NotATrace => false,
            _ => true,
        };
        let (total, first) = self.by_rule.entry(rule).or_default();
        *total += count;
        let room = PLACES.saturating_sub(first.len());
        first.extend(places.take(room));
    }

    pub(super) fn report(self, file: &Path, text: &[u8], events: u64) -> CheckReport {
        let loss = |(place, with): (Place, Option<Place>)| Loss {
            with: with.map(|other| Box::new(Loss::at(other, text))),
            ..Loss::at(place, text)
        };
        let finding = |(rule, (count, places)): (Rule, Found)| Finding {
            rule,
            kind: rule.kind(),
            meaning: rule.meaning(),
            count,
            places: places.into_iter().map(loss).collect(),
        };
        CheckReport {
            version: env!("CARGO_PKG_VERSION"),
            file: file.to_owned(),
            bytes: text.len() as u64,
            is_loaded: self.is_loaded,
            events,
            spans: self.spans,
            spans_dropped: self.spans_dropped,
            lost: self.by_rule.into_iter().map(finding).collect(),
        }
    }
}

impl Loss {
    fn at(place: Place, text: &[u8]) -> Loss {
        Loss {
            place,
            what: words(text, place),
            with: None,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("event {} at byte {}", self.place.event, self.place.offset);
        if !self.what.is_empty() {
            text += &format!(": {}", self.what);
        }
        if let Some(other) = &self.with {
            text += &format!("\n    clashes with {}", other.text());
        }
        text
    }
}

/// The event at a place as it stands there, without its args.
fn words(text: &[u8], place: Place) -> String {
    let at = usize::try_from(place.offset).unwrap_or(usize::MAX);
    let mut scanner = Scanner::new(text, at);
    let mut fields = Fields::default();
    if scanner.members(&mut fields).is_none() {
        match read(text, at) {
            Ok((loose, _)) => fields = loose,
            Err(_) => return String::new(),
        }
    }
    let members = [
        ("ph", fields.ph),
        ("name", fields.name),
        ("pid", fields.pid),
        ("tid", fields.tid),
        ("ts", fields.ts),
        ("dur", fields.dur),
    ];
    let words = members.iter().filter(|(_, value)| value.is_some());
    let words = words.map(|(key, value)| {
        let value = String::from_utf8_lossy(value.of(text));
        let short: String = value.chars().take(WIDTH).collect();
        let dots = if short.len() < value.len() { "…" } else { "" };
        format!("{key} {}{dots}", visible(&short))
    });
    words.collect::<Vec<_>>().join(", ")
}

impl CheckReport {
    /// Whether viewers show all of it.
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty()
    }

    /// How often a rule was broken.
    pub fn count(&self, rule: Rule) -> u64 {
        let found = self.lost.iter().find(|finding| finding.rule == rule);
        found.map_or(0, |finding| finding.count)
    }

    /// The report in words, for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let (file, events) = (self.file.display(), self.events);
        if self.is_clean() {
            return writeln!(text, "{file}: {events} events, viewers show them all");
        }
        writeln!(text, "{file}: {events} events checked, {}", self.summary())?;
        for finding in &self.lost {
            let (count, meaning, rule) = (finding.count, finding.meaning, finding.rule.name());
            writeln!(text, "{rule}: {count}\n  {meaning}")?;
            for place in &finding.places {
                writeln!(text, "  {}", place.text())?;
            }
            let more = count.saturating_sub(finding.places.len() as u64);
            if more > 0 {
                writeln!(text, "  and {more} more")?;
            }
        }
        Ok(())
    }
}

fn path_text<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}
