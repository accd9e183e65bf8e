//! The count that a process acknowledges up to the instruction that kills it.
#![expect(
    unsafe_code,
    reason = "acknowledging a span must survive SIGKILL in the next instruction: one store into a shared mapping"
)]

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;

/// Number of complete spans: those with a step below the count.
#[derive(Debug)]
pub(crate) struct Acknowledged(MmapRaw);

impl Acknowledged {
    /// Opens the count in a directory, or makes it with 0.
    pub(crate) fn open(directory: &Path) -> Result<Acknowledged, String> {
        let path = directory.join("acknowledged");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mapping = options.open(&path).and_then(|file| {
            file.set_len(size_of::<u64>() as u64)?;
            MmapRaw::map_raw(&file)
        });
        let mapping = mapping.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Acknowledged(mapping))
    }

    #[inline(always)]
    pub(crate) fn store(&self, spans: u64) {
        self.cell().store(spans, Ordering::Release);
    }

    pub(crate) fn load(&self) -> u64 {
        self.cell().load(Ordering::Acquire)
    }

    #[inline(always)]
    fn cell(&self) -> &AtomicU64 {
        // SAFETY: the mapping is one aligned word that lives as long as `self`, of a file that nobody shortens; everyone uses it atomically.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast()) }
    }
}
