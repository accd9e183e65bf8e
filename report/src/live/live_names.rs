//! How often and how long names were at work.

use crate::gather::name_keys::NameKey;
use crate::table::RowKind;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Names that are told apart; those beyond are counted together.
const MOST: usize = 4_096;
/// Names that are shown.
const NAMES: usize = 50;

/// The slices of one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NameSum {
    pub(super) ncall: u64,
    pub(super) total_ns: i64,
    pub(super) max_ns: i64,
}

impl NameSum {
    pub(super) fn take(&mut self, dur_ns: i64) {
        self.ncall += 1;
        self.total_ns = self.total_ns.saturating_add(dur_ns);
        self.max_ns = self.max_ns.max(dur_ns);
    }

    fn add(&mut self, other: NameSum) {
        self.ncall += other.ncall;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// A name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveName {
    /// The kind of its rows.
    pub row: RowKind,
    /// Its category.
    pub category: String,
    /// The name.
    pub name: String,
    /// Slices.
    pub ncall: u64,
    /// Their durations, together.
    pub total_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct LiveNames {
    sums: HashMap<(RowKind, String, String), NameSum>,
    /// Those of names for which there was no room.
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
            return self.others.add(sum);
        }
        self.sums.entry(key).or_default().add(sum);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Returns the names with the most time.
    pub(super) fn top(&self) -> Vec<LiveName> {
        let name =
            |((row, category, name), sum): (&(RowKind, String, String), &NameSum)| LiveName {
                row: *row,
                category: category.clone(),
                name: name.clone(),
                ncall: sum.ncall,
                total_ns: sum.total_ns,
                max_ns: sum.max_ns,
            };
        top_names(self.sums.iter().map(name))
    }
}

/// Returns the names with the most time.
pub(super) fn top_names(names: impl Iterator<Item = LiveName>) -> Vec<LiveName> {
    fn order(of: &LiveName) -> (Reverse<i64>, RowKind, &str, &str) {
        (Reverse(of.total_ns), of.row, &of.category, &of.name)
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
            sum.take(i64::try_from(number).unwrap());
            names.add(keys.into_keys().remove(0), sum);
        }
        assert_eq!((names.len(), names.others.ncall), (MOST, 10));
        let top = names.top();
        assert_eq!((&*top[0].name, &*top[1].name), ("name 4095", "name 4094"));
    }
}
