//! The names of kernels in records: they differ from the names in launches, but each time the same two come together.
//!
//! So a record whose name nearly always comes with the launches of another kernel does not belong to this launch, however well it falls between its
//! events. Then MSPTI's clock has stepped by about the distance of two launches, or the launch's own record is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of record names that are remembered.
const MAX_RECORD_NAMES: usize = 4096;
/// A name that came with this many kernels decides nothing.
const MAX_KERNELS: usize = 16;
/// Number of times that two names must come together to be a match.
const OFTEN: u32 = 4;
/// From here on the counts are halved, so that coincidences do not add up.
const MAX_TIMES: u32 = 1024;
/// A name belongs to one kernel if it came with that one this many times as often as with all others.
const TIMES_AS_OFTEN: u32 = 3;

/// The kernels that each record name has come with, and how often.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<Arc<str>, BTreeMap<Arc<str>, u32>>);

impl Names {
    /// Notes that a launch of this kernel had a record of this name.
    pub(super) fn learn(&mut self, kernel: &Arc<str>, record: &Arc<str>) {
        if self.0.len() >= MAX_RECORD_NAMES && !self.0.contains_key(record) {
            return;
        }
        let kernels = self.0.entry(Arc::clone(record)).or_default();
        if kernels.len() >= MAX_KERNELS && !kernels.contains_key(kernel) {
            return;
        }
        let times = kernels.entry(Arc::clone(kernel)).or_default();
        *times += 1;
        if *times >= MAX_TIMES {
            kernels.retain(|_, times| {
                *times /= 2;
                *times > 0
            });
        }
    }

    /// Returns true if a record of this name certainly belongs to another kernel.
    pub(super) fn contradict(&self, kernel: &str, record: &str) -> bool {
        let Some(kernels) = self.0.get(record) else {
            return false;
        };
        let is_own = kernels.get(kernel).is_some_and(|times| *times >= OFTEN);
        if is_own || kernels.len() >= MAX_KERNELS {
            return false;
        }
        let all: u32 = kernels.values().sum();
        let most = kernels.values().copied().max().unwrap_or(0);
        most >= OFTEN && most >= TIMES_AS_OFTEN * (all - most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(pairs: &[(&str, &str, u32)]) -> Names {
        let mut names = Names::default();
        for (kernel, record, times) in pairs {
            for _ in 0..*times {
                names.learn(&(*kernel).into(), &(*record).into());
            }
        }
        names
    }

    #[test]
    fn a_name_that_comes_with_one_kernel_is_no_others() {
        let names = taught(&[("MatMulV2", "aclnnMm_MatMul", 6), ("Add", "aclnnAdd", 9)]);
        assert!(names.contradict("Add", "aclnnMm_MatMul"));
        assert!(names.contradict("new", "aclnnMm_MatMul"));
        assert!(!names.contradict("MatMulV2", "aclnnMm_MatMul"));
        assert!(!names.contradict("Add", "never seen"));
    }

    #[test]
    fn a_name_of_several_kernels_or_seen_too_rarely_says_nothing() {
        let shared = taught(&[("one", "kernel", 8), ("two", "kernel", 3)]);
        assert!(!shared.contradict("three", "kernel"));
        let rare = taught(&[("one", "kernel", OFTEN - 1)]);
        assert!(!rare.contradict("two", "kernel"));
    }

    #[test]
    fn a_wrong_lesson_is_outnumbered() {
        let mut names = taught(&[("neighbour", "kernel", 5)]);
        assert!(names.contradict("own", "kernel"));
        let own: Arc<str> = "own".into();
        names.learn(&own, &"kernel".into());
        names.learn(&own, &"kernel".into());
        assert!(!names.contradict("own", "kernel"), "it may be either's");
        let mut rare = taught(&[("usual", "kernel", 1000)]);
        for _ in 0..OFTEN {
            assert!(rare.contradict("rare", "kernel"));
            rare.learn(&"rare".into(), &"kernel".into());
        }
        assert!(!rare.contradict("rare", "kernel"));
    }

    #[test]
    fn coincidences_do_not_add_up() {
        let mut names = Names::default();
        let [usual, other, record]: [Arc<str>; 3] = ["usual", "other", "kernel"].map(Into::into);
        for _ in 0..8 {
            (0..MAX_TIMES).for_each(|_| names.learn(&usual, &record));
            names.learn(&other, &record);
            assert!(names.contradict("other", "kernel"));
        }
        (0..2 * MAX_TIMES).for_each(|_| names.learn(&usual, &record));
        assert_eq!(names.0["kernel"].len(), 1, "the other one is forgotten");
    }

    #[test]
    fn a_name_of_many_kernels_says_nothing() {
        let mut names = taught(&[("usual", "", 1000)]);
        assert!(names.contradict("last", ""));
        for index in 1..MAX_KERNELS {
            names.learn(&index.to_string().into(), &"".into());
        }
        assert!(!names.contradict("last", ""));
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut names = Names::default();
        for index in 0..=MAX_RECORD_NAMES {
            names.learn(&"k".into(), &index.to_string().into());
        }
        for index in 0..=MAX_KERNELS {
            names.learn(&index.to_string().into(), &"0".into());
        }
        assert_eq!(names.0.len(), MAX_RECORD_NAMES);
        assert_eq!(names.0["0"].len(), MAX_KERNELS);
    }
}
