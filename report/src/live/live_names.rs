//! Number and duration of the calls of each name.

use crate::gather::name_keys::NameKey;
use crate::table::RowKind;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Maximum number of distinct names. All further ones are counted together.
const MOST: usize = 4_096;
/// Number of names that are shown.
const NAMES: usize = 50;

/// Slices of one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NameSum {
    pub(super) ncall: u64,
    pub(super) total_ns: i64,
    pub(super) max_ns: i64,
}

impl NameSum {
    pub(super) fn add_slice(&mut self, dur_ns: i64) {
        self.ncall += 1;
        self.total_ns = self.total_ns.saturating_add(dur_ns);
        self.max_ns = self.max_ns.max(dur_ns);
    }

    fn merge(&mut self, other: NameSum) {
        self.ncall += other.ncall;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// A name with its calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveName {
    /// Kind of the tracks that its slices are on.
    pub row: RowKind,
    /// Category of the spans.
    pub category: String,
    /// Name of the spans.
    pub name: String,
    /// Number of slices.
    pub ncall: u64,
    /// Total duration of the slices, in ns.
    pub total_ns: i64,
    /// Duration of the longest slice, in ns.
    pub max_ns: i64,
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct LiveNames {
    sums: HashMap<(RowKind, String, String), NameSum>,
    /// Slices of all names beyond the maximum.
    pub(super) others: NameSum,
}

impl LiveNames {
    /// Adds the slices of a name.
    pub(super) fn add(&mut self, name: NameKey, sum: NameSum) {
        if sum.ncall == 0 {
            return;
        }
        let key = (name.row_kind, name.category, name.name);
        if self.sums.len() >= MOST && !self.sums.contains_key(&key) {
            return self.others.merge(sum);
        }
        self.sums.entry(key).or_default().merge(sum);
    }

    /// Returns the number of distinct names.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Returns the names with the most time.
    pub(super) fn top(&self) -> Vec<LiveName> {
        let name =
            |((row_kind, category, name), sum): (&(RowKind, String, String), &NameSum)| LiveName {
                row: *row_kind,
                category: category.clone(),
                name: name.clone(),
                ncall: sum.ncall,
                total_ns: sum.total_ns,
                max_ns: sum.max_ns,
            };
        top_names(self.sums.iter().map(name))
    }
}

/// Sorts names by time and returns the first ones.
pub(super) fn top_names(names: impl Iterator<Item = LiveName>) -> Vec<LiveName> {
    fn order(name: &LiveName) -> (Reverse<i64>, RowKind, &str, &str) {
        (Reverse(name.total_ns), name.row, &name.category, &name.name)
    }
    let mut names: Vec<LiveName> = names.collect();
    names.sort_by(|one, other| order(one).cmp(&order(other)));
    names.truncate(NAMES);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::name_keys::{NameKeys, NamePlace};

    #[test]
    fn names_beyond_the_room_are_counted_together() {
        let mut names = LiveNames::default();
        for number in 0..MOST + 10 {
            let mut keys = NameKeys::default();
            let name = format!("name {number}");
            keys.number(NamePlace::default(), RowKind::Thread, ("c", &name), || None);
            let mut sum = NameSum::default();
            sum.add_slice(i64::try_from(number).unwrap());
            names.add(keys.into_keys().remove(0), sum);
        }
        assert_eq!((names.len(), names.others.ncall), (MOST, 10));
        let top = names.top();
        assert_eq!((&*top[0].name, &*top[1].name), ("name 4095", "name 4094"));
    }
}
