//! What was found: how often, where first, and in words.

use super::rule::Rule;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Places remembered of each rule.
const PLACES: usize = 5;

/// Where something stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Byte offset in the text.
    pub offset: u64,
    /// Number of the event, the first being 0; of what stands between events, that of the next.
    pub event: u64,
}

/// What viewers would lose for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The reason.
    pub rule: Rule,
    /// What it means.
    pub meaning: &'static str,
    /// How often.
    pub count: u64,
    /// The first places.
    pub places: Vec<Place>,
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
    /// Events that were looked at.
    pub events: u64,
    /// What would be lost.
    pub lost: Vec<Finding>,
}

/// Findings as they come.
#[derive(Default)]
pub(super) struct Findings(BTreeMap<Rule, (u64, Vec<Place>)>);

impl Findings {
    pub(super) fn add(&mut self, rule: Rule, place: Place) {
        self.add_many(rule, 1, &[place]);
    }

    pub(super) fn add_many(&mut self, rule: Rule, count: u64, places: &[Place]) {
        let (total, first) = self.0.entry(rule).or_default();
        *total += count;
        let room = PLACES.saturating_sub(first.len());
        first.extend(places.iter().take(room));
    }

    pub(super) fn report(self, file: &Path, bytes: usize, events: u64) -> CheckReport {
        let finding = |(rule, (count, places)): (Rule, _)| Finding {
            rule,
            meaning: rule.meaning(),
            count,
            places,
        };
        CheckReport {
            version: env!("CARGO_PKG_VERSION"),
            file: file.to_owned(),
            bytes: bytes as u64,
            events,
            lost: self.0.into_iter().map(finding).collect(),
        }
    }
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
        writeln!(
            text,
            "{file}: {events} events checked, viewers would lose some"
        )?;
        for finding in &self.lost {
            let (count, meaning, rule) = (finding.count, finding.meaning, finding.rule.name());
            writeln!(text, "{rule}: {count}\n  {meaning}")?;
            for place in &finding.places {
                writeln!(text, "  event {} at byte {}", place.event, place.offset)?;
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
