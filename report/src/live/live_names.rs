//! How often and how long names were at work.

use crate::gather::name_keys::NameKey;
use crate::table::row_kind::RowKind;
use std::collections::HashMap;

/// Names that are told apart; those beyond are counted together.
const MOST: usize = 4_096;

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

/// All names.
#[derive(Debug, Default)]
pub(super) struct LiveNames {
    sums: HashMap<(u8, String, String), (RowKind, NameSum)>,
    /// Those of names for which there was no room.
    pub(super) others: NameSum,
}

impl LiveNames {
    /// Adds the slices of a name.
    pub(super) fn add(&mut self, name: NameKey, sum: NameSum) {
        if sum.ncall == 0 {
            return;
        }
        let key = (name.row_kind as u8, name.category, name.name);
        if self.sums.len() >= MOST && !self.sums.contains_key(&key) {
            return self.others.add(sum);
        }
        let known = self.sums.entry(key);
        let (_, known) = known.or_insert((name.row_kind, NameSum::default()));
        known.add(sum);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// The names with the most time.
    pub(super) fn top(&self, most: usize) -> Vec<(RowKind, &str, &str, NameSum)> {
        let sums = self.sums.iter();
        let mut all: Vec<_> = sums
            .map(|((_, category, name), (kind, sum))| {
                (*kind, category.as_str(), name.as_str(), *sum)
            })
            .collect();
        all.sort_by_key(|(kind, category, name, sum)| {
            (std::cmp::Reverse(sum.total_ns), *kind, *category, *name)
        });
        all.truncate(most);
        all
    }
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
        let top = names.top(2);
        assert_eq!((top[0].2, top[1].2), ("name 4095", "name 4094"));
    }
}
