//! What is looked for among the records of MSPTI: the kernels of a launch, between the two events of its pair.
//!
//! Both know the device's time: the events as it is, the records with something added, which MSPTI changes every few seconds. Each record that lies
//! between the events bounds what that is.

use crate::graphs::RecordCount;
use crate::mspti::Kernel;
use std::sync::Arc;

/// What a time in a record is more than the device's own: at least and at most, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) low_ns: i64,
    pub(super) high_ns: i64,
}

impl Offset {
    pub(super) fn and(self, other: Offset) -> Offset {
        Offset {
            low_ns: self.low_ns.max(other.low_ns),
            high_ns: self.high_ns.min(other.high_ns),
        }
    }

    /// Whether nothing contradicts it.
    pub(super) fn is_possible(self) -> bool {
        self.low_ns <= self.high_ns
    }

    pub(super) fn middle_ns(self) -> i64 {
        self.low_ns.midpoint(self.high_ns)
    }

    pub(super) fn wider(self, by_ns: i64) -> Offset {
        Offset {
            low_ns: self.low_ns.saturating_sub(by_ns),
            high_ns: self.high_ns.saturating_add(by_ns),
        }
    }
}

/// The kernels of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sought {
    /// Between these times of the device it has run.
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// The stream that it was launched into.
    pub(super) stream: u32,
    /// What the kernel is called, if it is a kernel by itself.
    pub(super) name: Option<Arc<str>>,
    /// The graph that was replayed, if it was one.
    pub(super) graph: Option<usize>,
    /// How many records it has, if its capture tells.
    pub(super) expected: Option<usize>,
    /// How many records it has at least.
    pub(super) at_least: RecordCount,
    /// Whether it may have records of collectives.
    pub(super) has_collectives: bool,
    /// What the offset is if MSPTI's clock is right.
    pub(super) prior_ns: i64,
}

impl Sought {
    /// The times of the device between which it has run.
    pub(super) fn between(&self) -> (i64, i64) {
        (self.start_ns, self.end_ns)
    }

    /// What the offset is if a kernel is one of these.
    pub(super) fn offset(&self, kernel: &Kernel) -> Offset {
        Offset {
            low_ns: kernel.end_ns - self.end_ns,
            high_ns: kernel.start_ns - self.start_ns,
        }
    }

    /// The same of several kernels.
    pub(super) fn offset_of<'a>(&self, kernels: impl Iterator<Item = &'a Kernel>) -> Offset {
        let all = Offset {
            low_ns: i64::MIN,
            high_ns: i64::MAX,
        };
        kernels.fold(all, |offset, kernel| offset.and(self.offset(kernel)))
    }
}
