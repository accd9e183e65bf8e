//! Parts of a file that have no meaning here, and how often they occur.

use std::collections::BTreeMap;

/// Maximum number of descriptions in a text.
const MAX_PARTS: usize = 24;

/// Parts of a file that were ignored, by description, with the line of the first one and their number.
#[derive(Debug, Default)]
pub(crate) struct Ignored(BTreeMap<String, (usize, usize)>);

impl Ignored {
    pub(crate) fn add(&mut self, what: impl Into<String>, line: usize) {
        self.0.entry(what.into()).or_insert((line, 0)).1 += 1;
    }

    /// Returns a text such as `handler (19 times, first in line 4), trace (line 9)`, or `None` if nothing was ignored.
    pub(crate) fn text(&self) -> Option<String> {
        let parts = self.0.iter().map(|(what, (line, count))| match count {
            1 => format!("{what} (line {line})"),
            _ => format!("{what} ({count} times, first in line {line})"),
        });
        let mut all: Vec<_> = parts.take(MAX_PARTS).collect();
        if self.0.len() > MAX_PARTS {
            all.push(format!("and {} others", self.0.len() - MAX_PARTS));
        }
        (!all.is_empty()).then(|| all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_descriptions_are_part_of_the_text() {
        let mut ignored = Ignored::default();
        for number in 0..30 {
            ignored.add(format!("key{number:02}"), number);
        }
        let text = ignored.text().unwrap();
        assert!(text.ends_with("key23 (line 23), and 6 others"), "{text}");
    }
}
