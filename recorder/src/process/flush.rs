//! Moves published lines from a slot to the fragment in blocks.

use memchr::{memchr, memrchr};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::process::state::Process;
use crate::ring::loss::Loss;
use crate::ring::slot::{GENERATION, Slot};
use crate::segment::active_segment::ActiveSegment;
use crate::segment::block::{Block, CACHE_LINE_BYTES};
use crate::sys::clock;
use crate::sys::wait::{self, PATIENCE_NS};
use crate::text::line::count_unreported_events;
use sa_format::loss::Cause;
use sa_format::{BlockHeader, MAX_HEADER_BYTES, block_sum, ring as layout};

/// Size in bytes of the steps in which the file grows while there is enough to write. In reserved
/// blocks, appends of 64 KiB that start and end at a multiple of that size take 21 ns for 119 bytes
/// on the test machine. Appends of 32 KiB take 26 ns, and those of 16 KiB 37 ns. Others take up to
/// 270 ns, because the page cache then uses pieces of many sizes.
pub(crate) const STEP_BYTES: usize = 64 << 10;
/// Time in ns that a thread needs to count a line after it has waited in vain.
const COUNT_NS: u64 = 50_000_000;
/// Size in bytes of a remaining step that is not worth a block of its own.
const SMALL_REST: usize = STEP_BYTES / 4;
/// Room in bytes for the header of a block and empty lines before it.
const HEADER_ROOM: usize = CACHE_LINE_BYTES + MAX_HEADER_BYTES;
/// Fills up a step. Empty lines have no meaning.
static PADDING: [u8; 4096] = [b'\n'; 4096];

/// The amount that a flush writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything that is published.
    All,
    /// Only enough to fill the file up to a step. The rest waits for the next flush.
    Steps,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything that the extent includes is in the fragment.
    Done,
    /// Another thread is flushing.
    Busy,
    /// The file cannot be written to now.
    Failed(Cause),
}

/// Writes the published lines of a slot (the ring area of one thread) to the fragment, waiting
/// without limit for its lock. Only the recorder's helper thread calls this.
pub(crate) fn flush(slot: &Slot, process: &Process) -> Outcome {
    if slot.is_empty() {
        return Outcome::Done;
    }
    // The fragment is locked first: a thread that has it and begins a segment needs the turn of
    // every slot for a moment.
    let active = process.fragment.lock();
    match slot.try_turn() {
        None => Outcome::Busy,
        Some(_turn) => flush_to(slot, process, active, Extent::All),
    }
}

/// Writes the published lines of a slot (the ring area of one thread) to the fragment, or returns
/// [`Outcome::Busy`] if another thread is writing. `extent` says how much to write.
pub(crate) fn try_flush(slot: &Slot, process: &Process, extent: Extent) -> Outcome {
    let Some(_turn) = slot.try_turn() else {
        return Outcome::Busy;
    };
    if slot.is_empty() {
        return Outcome::Done;
    }
    match process.fragment.try_lock() {
        Some(active) => flush_to(slot, process, active, extent),
        None => Outcome::Busy,
    }
}

/// Writes the published lines of a slot to the fragment, for a recording thread whose slot is full.
/// Returns [`Outcome::Busy`] if another thread is writing. If the file system hangs, the helper
/// thread hangs before other threads do. In a process without a helper thread, a short-lived thread
/// does the write, and the caller waits for it until `end_ns`.
pub(crate) fn flush_within(slot: &'static Slot, process: &Process, end_ns: u64) -> Outcome {
    if !process.has_helper() {
        process.count_full_ring();
    }
    if process.has_helper_at_work() {
        return try_flush(slot, process, Extent::All);
    }
    if slot.try_turn().is_none() || process.fragment.try_lock().is_none() {
        return Outcome::Busy;
    }
    let flush = move |process: &Process| try_flush(slot, process, Extent::All);
    let outcome = process.offload_or_run(end_ns, flush);
    outcome.unwrap_or(Outcome::Busy)
}

/// Writes the published lines of a slot (the ring area of one thread) to the fragment. Waits until
/// `end_ns` if another thread is writing.
pub(crate) fn flush_until(slot: &Slot, process: &Process, end_ns: u64) -> Outcome {
    let flush = || Some(try_flush(slot, process, Extent::All)).filter(|end| *end != Outcome::Busy);
    wait::until(end_ns, flush).unwrap_or(Outcome::Busy)
}

fn flush_to(
    slot: &Slot,
    process: &Process,
    mut active: MutexGuard<'_, ActiveSegment>,
    extent: Extent,
) -> Outcome {
    let head = slot.head();
    let mut from = slot.flushed().load(Ordering::Relaxed);
    while from < head {
        // SAFETY: we have the turn, and `head` was read from the state.
        let lines = unsafe { slot.published(from, head) };
        let rest = rest_of_step(active.segment.size);
        if extent == Extent::Steps && lines.len() < rest {
            break;
        }
        let len = block_len(lines, rest.saturating_sub(HEADER_ROOM));
        let block = &lines[..len];
        let header = BlockHeader {
            slot: slot.index,
            generation: GENERATION,
            from,
            len: len as u64,
            sum: block_sum(slot.index, GENERATION, from, block),
        };
        let mut room = [b'\n'; HEADER_ROOM]; // on the stack, because a flush must work without memory
        let mut rest_of_room = &mut room[CACHE_LINE_BYTES..];
        header.write(process.pid, &mut rest_of_room);
        let end = HEADER_ROOM - rest_of_room.len();
        let lead = lead(block, active.segment.size + (end - CACHE_LINE_BYTES) as u64);
        let header = &room[CACHE_LINE_BYTES - lead..end];
        let padding = padding(rest, header.len() + len, len < lines.len());
        let block = Block {
            source: Some((slot, from)),
            header,
            lines: block,
            padding,
        };
        if let Err(cause) = active.append(&process.source(), &block) {
            return Outcome::Failed(cause);
        }
        if slot.index > 0 {
            process.fragment.add_to_tally(block.lines);
        }
        from += len as u64;
        slot.flushed().store(from, Ordering::Release);
    }
    Outcome::Done
}

/// Returns how many bytes may be appended to a file of `size` bytes until it ends at a multiple of
/// [`STEP_BYTES`].
fn rest_of_step(size: u64) -> usize {
    let rest = STEP_BYTES - usize::try_from(size % STEP_BYTES as u64).unwrap_or(0);
    let more = if rest < SMALL_REST { STEP_BYTES } else { 0 };
    rest + more
}

/// Returns the number of empty lines to write before a block, so that it has the same offset in a
/// cache line in the file as in memory. Without them it would start at file offset `at`.
fn lead(block: &[u8], at: u64) -> usize {
    let from = block.as_ptr().addr() % CACHE_LINE_BYTES;
    let to = usize::try_from(at % CACHE_LINE_BYTES as u64).unwrap_or(0);
    (from + CACHE_LINE_BYTES - to) % CACHE_LINE_BYTES
}

/// Returns empty lines that fill up the last bytes of a step after `written` of its `rest` bytes.
/// Returns none unless `more` is true, which means that further lines follow.
fn padding(rest: usize, written: usize, more: bool) -> &'static [u8] {
    let missing = PADDING.get(..rest.saturating_sub(written));
    missing.filter(|_| more).unwrap_or_default()
}

/// Returns the length in bytes of the next block of `lines`: whole lines of at most `bound` bytes,
/// or one longer line.
fn block_len(lines: &[u8], bound: usize) -> usize {
    let Some(front) = lines.get(..bound) else {
        return lines.len();
    };
    let last = memrchr(b'\n', front);
    let end = last.or_else(|| Some(bound + memchr(b'\n', &lines[bound..])?));
    end.map_or(lines.len(), |newline| newline + 1)
}

/// Drops the oldest quarter of the lines in a slot, so that the newest ones stay. Called when they
/// cannot be written to the fragment, for `cause`. Returns the number of lost events, or `None` if
/// another thread is using the slot.
pub(crate) fn drop_oldest(slot: &Slot, cause: Cause) -> Option<u64> {
    let _turn = slot.try_turn()?;
    let (from, head) = (slot.flushed().load(Ordering::Relaxed), slot.head());
    // SAFETY: we have the turn, and `head` was read from the state.
    let lines = unsafe { slot.published(from, head) };
    let quarter = usize::try_from(slot.bytes / 4)
        .unwrap_or(0)
        .min(lines.len());
    let newline = memchr(b'\n', &lines[quarter..]);
    let end = newline.map_or(lines.len(), |at| quarter + at + 1);
    let loss = Loss::from_lines(cause, from, &lines[..end], clock::now_ns());
    let pending = wait::lock(&slot.pending)?;
    pending.add(&loss);
    // From this store on the loss counts. It must not be reported earlier, because until then the
    // lines are in the ring.
    slot.flushed().store(loss.to, Ordering::Release);
    drop(pending);
    Some(count_unreported_events(&lines[..end]))
}

/// Publishes lines at position `head` of a slot that the caller owns and that has room for them.
/// `depth` is the number of open spans to publish with them.
pub(crate) fn append(slot: &Slot, head: u64, lines: &[u8], depth: u64) {
    // SAFETY: positions from `head` on belong to the owner, and there is room.
    let room = unsafe { std::slice::from_raw_parts_mut(slot.address(head), lines.len()) };
    room.copy_from_slice(lines);
    let state = layout::state(head + lines.len() as u64, depth, slot.key);
    slot.state().store(state, Ordering::Release);
}

impl Process {
    /// Makes room for `bytes` bytes in a slot (a ring area) that the caller owns, by writing its
    /// lines to the fragment. Drops its oldest lines if they cannot be written. Returns false if
    /// there is no room within a second, or if the slot is too small.
    pub(crate) fn make_room(&self, slot: &'static Slot, bytes: u64) -> bool {
        let has_room =
            || slot.head() + bytes <= slot.flushed().load(Ordering::Acquire) + slot.bytes;
        if bytes > slot.bytes / 2 {
            return false;
        }
        let start = clock::now_ns();
        while !has_room() {
            match flush_within(slot, self, start + PATIENCE_NS) {
                Outcome::Done => {}
                Outcome::Failed(cause) => {
                    self.lost.add_total(drop_oldest(slot, cause).unwrap_or(0));
                }
                Outcome::Busy if clock::now_ns() > start + PATIENCE_NS => return false,
                Outcome::Busy => wait::pause(start),
            }
        }
        true
    }

    /// Writes a line straight to the fragment instead of to a slot, or counts it as lost. If the
    /// file system hangs, the line is written or counted when it responds.
    pub(crate) fn write_through(&self, line: &[u8]) {
        let end_ns = clock::now_ns() + PATIENCE_NS;
        let mut copy = Vec::new();
        if !self.has_helper_at_work() && copy.try_reserve_exact(line.len()).is_ok() {
            copy.extend_from_slice(line);
            let write = move |process: &Process| process.write_line(&copy, end_ns);
            if self.offload(end_ns + COUNT_NS, write).is_ok() {
                return;
            }
        }
        self.write_line(line, end_ns);
    }

    fn write_line(&self, line: &[u8], end_ns: u64) {
        let outcome = match self.fragment.lock_until(end_ns) {
            Some(mut active) => {
                self.fragment.begin_line();
                let outcome = active.append(&self.source(), &Block::line(line));
                self.fragment.end_line();
                outcome
            }
            None => Err(Cause::Busy),
        };
        if let Err(cause) = outcome {
            self.lost.count(cause);
        }
    }

    /// Counts the line as lost that [`Process::write_through`] is still writing, because that write
    /// does not return. For the end of the process.
    pub(crate) fn count_unfinished_line(&self) {
        if self.fragment.end_line() {
            self.lost.count(Cause::Busy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_lines() {
        let line = [vec![b'x'; 99], vec![b'\n']].concat();
        let many = line.repeat(1000);
        assert_eq!(block_len(&many, 32_768), 32_700);
        assert_eq!(block_len(&many[..500], 32_768), 500);
        let long = [vec![b'x'; 40_000], vec![b'\n'], line].concat();
        assert_eq!(block_len(&long, 32_768), 40_001);
    }
}
