//! Threads as the lines of a recording name them.

/// Some threads of a recording: one bit for each of 64 kinds.
#[derive(Clone, Copy, Default)]
pub struct ThreadSet(u64);

impl ThreadSet {
    /// Whether both may hold the same thread.
    pub fn meets(self, other: ThreadSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<(i64, i64)> for ThreadSet {
    fn from_iter<T: IntoIterator<Item = (i64, i64)>>(threads: T) -> ThreadSet {
        let bits = threads.into_iter().map(|thread| 1 << thread_kind(thread));
        ThreadSet(bits.fold(0, |set, bit| set | bit))
    }
}

/// Which of 64 kinds a thread is of.
#[inline(always)]
pub fn thread_kind((pid, tid): (i64, i64)) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (tid ^ pid.rotate_left(32)).cast_unsigned();
    (mixed.wrapping_mul(SPREAD) >> 58) as usize
}

/// A thread of a recording, as its lines name it.
pub type RecordedThread = (usize, (i64, i64));
