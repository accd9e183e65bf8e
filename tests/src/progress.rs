//! The progress file: a mapped array of counters in which a victim acknowledges its work, up to the instruction that killed it.
#![expect(
    unsafe_code,
    reason = "acknowledging a span must survive SIGKILL in the next instruction: one atomic store into a shared mapping"
)]

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use memmap2::MmapRaw;

const CELL_BYTES: usize = 8;
const CELLS_PER_THREAD: usize = 32;
const FIRST_THREAD_CELL: usize = 32;
const MAX_THREADS: usize = 64;
const MARKS: usize = 3;
/// Number of nesting levels with marks in the file.
pub const LEVELS: usize = 3;

/// Counters of the whole victim.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    /// Number of threads that have recorded at least one span.
    Ready,
    /// Set by the test: the victim may continue, to its ending or into the stepped region.
    Go,
    /// Set by the victim: it has left the stepped region.
    Done,
    /// Number of flushes that recording threads have called.
    Flushes,
    /// Set by the test: number of spans that each thread may have recorded by now, in bursts; 0 for no limit.
    Allowed,
}

/// Information about one nesting level of a thread's open spans. All times are `CLOCK_MONOTONIC` ns.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// Time before the span was begun; 0 if no span is open.
    Before,
    /// Time after the span was begun; 0 until then.
    After,
    /// Sequence number + 1 of the span, set just before it is ended; 0 until then.
    Closing,
}

/// A mapped progress file.
#[derive(Debug)]
pub struct Progress(MmapRaw);

impl Progress {
    /// Creates the file with all counters at zero.
    pub fn create(path: &Path) -> Self {
        let cells = FIRST_THREAD_CELL + MAX_THREADS * CELLS_PER_THREAD;
        std::fs::write(path, vec![0; cells * CELL_BYTES]).expect("own directory");
        Progress::open(path)
    }

    /// Maps a file created by [`Progress::create`].
    ///
    /// # Panics
    ///
    /// If it cannot be opened or mapped.
    pub fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path);
        let map = file.and_then(|file| MmapRaw::map_raw(&file));
        Progress(map.expect("the progress file can be mapped"))
    }

    /// Returns a counter of the whole victim.
    pub fn control(&self, control: Control) -> &AtomicU64 {
        self.cell(control as usize)
    }

    /// Returns the number of spans that a thread has acknowledged. Spans with sequence numbers below it have been recorded.
    pub fn acknowledged(&self, thread: usize) -> &AtomicU64 {
        self.cell(FIRST_THREAD_CELL + thread * CELLS_PER_THREAD)
    }

    /// Returns the kernel tid of a thread.
    pub fn tid(&self, thread: usize) -> &AtomicU64 {
        self.cell(FIRST_THREAD_CELL + thread * CELLS_PER_THREAD + 1)
    }

    /// Returns a mark of the span at `level` of a thread.
    pub fn mark(&self, thread: usize, level: usize, mark: Mark) -> &AtomicU64 {
        assert!(level < LEVELS, "no marks for level {level}");
        self.cell(FIRST_THREAD_CELL + thread * CELLS_PER_THREAD + 2 + level * MARKS + mark as usize)
    }

    fn cell(&self, index: usize) -> &AtomicU64 {
        assert!(
            (index + 1) * CELL_BYTES <= self.0.len(),
            "no cell {index} in the progress file"
        );
        let at = self.0.as_mut_ptr().wrapping_add(index * CELL_BYTES);
        // SAFETY: the assertion keeps the aligned cell inside the mapping, which lives as long as `self`. All accesses are atomic.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }
}
