//! Layout of the ring file (FORMAT.md §3): offsets and sizes in bytes.

mod text;

use twox_hash::XxHash3_64;

pub use text::{
    DEEP_TEXT_BYTES, LANE_TEXT_BYTES, OPEN_TEXT_AT, SLOT_TEXT_BYTES, SpanText, TEXT_AREAS_AT,
    TEXT_AREAS_BYTES, TextAreas, pack_span_text,
};

/// First bytes of a ring file.
pub const MAGIC: [u8; 8] = *b"SAPRING1";
/// Offset of the u32 version.
pub const VERSION_AT: usize = 8;
/// Offset of the u32 page size.
pub const PAGE_BYTES_AT: usize = 12;
/// Offset of the u64 nonce.
pub const NONCE_AT: usize = 16;
/// Offset of the u32 pid.
pub const PID_AT: usize = 24;
/// Offset of the u32 [`header_sum`].
pub const SUM_AT: usize = 28;
/// Offset of the u32 offset of the site table.
pub const SITES_OFFSET_AT: usize = 32;
/// Offset of the u32 size of the site table.
pub const SITES_BYTES_AT: usize = 36;
/// Offset of the u32 offset of the lane table.
pub const LANES_OFFSET_AT: usize = 44;
/// Offset of the u32 number of entries in the lane table.
pub const LANES_COUNT_AT: usize = 48;
/// Offset of the u32 offset of the slot directory.
pub const DIRECTORY_OFFSET_AT: usize = 52;
/// Offset of the u32 capacity of the slot directory in entries.
pub const DIRECTORY_COUNT_AT: usize = 56;
/// Offset of the link to the first chunk of lanes beyond the lane table.
pub const MORE_LANES_AT: usize = 152;
/// Seed of the checksums of the links between chunks of lanes. The seed of a slot's links is the
/// slot's number.
pub const MORE_LANES_SEED: u32 = u32::MAX;
/// Size of a chunk's head, which begins with the link to the next chunk.
pub const CHUNK_HEAD_BYTES: usize = 64;
/// Size of the header.
pub const HEADER_BYTES: usize = 60;
/// Offset of the u32 offset of the loss table; 0 if the file has no such table.
pub const LOSSES_OFFSET_AT: usize = 64;
/// Offset of the u32 number of entries in the loss table: one for each slot.
pub const LOSSES_COUNT_AT: usize = 68;
/// Offset of the u32 offset of the count table; 0 if the file has no such table.
pub const COUNTS_OFFSET_AT: usize = 72;
/// Offset of the u32 number of entries in the count table: one for each cause, by its number.
pub const COUNTS_COUNT_AT: usize = 76;
/// Offset of the u32 [`tables_sum`] of the 16 bytes before it.
pub const TABLES_SUM_AT: usize = 80;

/// Size of an entry of the loss table and of the count table.
pub const LOSS_ENTRY_BYTES: usize = 64;
/// Offset in a loss entry of the u64 number of events lost before the last time.
pub const LOSS_BEFORE_AT: usize = 0;
/// Offset in a loss entry of the u64 number of events lost, including the last ones.
pub const LOSS_EVENTS_AT: usize = 8;
/// Offset in a loss entry of the u64 first position.
pub const LOSS_FROM_AT: usize = 16;
/// Offset in a loss entry of the u64 position after the last one.
pub const LOSS_TO_AT: usize = 24;
/// Offset in both kinds of entries of the u64 time of the first lost event, in ns.
pub const LOSS_FIRST_AT: usize = 32;
/// Offset in both kinds of entries of the u64 time of the last lost event, in ns.
pub const LOSS_LAST_AT: usize = 40;
/// Offset in both kinds of entries of the u64 position in slot 0 after the record that reports the
/// loss; 0 if no record reports it.
pub const LOSS_REPORTED_AT: usize = 48;
/// Offset in a loss entry of the u32 number of the cause; 0 in an empty entry.
pub const LOSS_CAUSE_AT: usize = 56;
/// Offset in a loss entry of the u32 tid of the thread that lost the events; 0 if there were
/// several or none.
pub const LOSS_TID_AT: usize = 60;
/// Offset in a count entry of the u64 number of everything counted so far.
pub const COUNT_EVENTS_AT: usize = 0;
/// Offset in a count entry of the u64 number reported by earlier records.
pub const COUNT_REPORTED_AT: usize = 8;
/// Offset in a count entry of the u64 number that is reported once slot 0 has reached the position.
pub const COUNT_NEXT_AT: usize = 16;
/// Offset in a count entry of the u32 error number from the system.
pub const COUNT_ERROR_AT: usize = 56;

/// Size of a slot directory entry: u64 offset, u32 ring size, u32 [`entry_sum`].
pub const DIRECTORY_ENTRY_BYTES: usize = 16;
/// Offset in an entry of the u32 ring size.
pub const ENTRY_SIZE_AT: usize = 8;
/// Offset in an entry of the u32 checksum.
pub const ENTRY_SUM_AT: usize = 12;

/// Offset in a slot of the u64 [`state`].
pub const SLOT_STATE_AT: usize = 0;
/// Offset in a slot of the u64 flushed position.
pub const SLOT_FLUSHED_AT: usize = 8;
/// Offset in a slot of the u32 tid.
pub const SLOT_TID_AT: usize = 16;
/// Offset in a slot of the u32 generation.
pub const SLOT_GENERATION_AT: usize = 20;
/// Offset in a slot of the link to the first chunk of the spans deeper than its stack.
pub const SLOT_DEEPER_AT: usize = 24;
/// Offset in a slot of the u64 [`ending`].
pub const SLOT_ENDING_AT: usize = 40;
/// Offset in a slot of the open-span stack.
pub const SLOT_STACK_AT: usize = 64;
/// Minimum size of a slot's control part. On machines with larger pages it is the page size.
pub const SLOT_CONTROL_BYTES: usize = 4096;

/// Entries of the open-span stack.
pub const STACK_DEPTH: usize = 32;
/// Largest depth in a state. It means this depth or more.
pub const MAX_DEPTH: usize = 255;
/// Size of an entry of the open-span stack and of the lane table.
pub const OPEN_ENTRY_BYTES: usize = 64;
/// Offset in an entry of the u64 start in ns.
pub const OPEN_START_AT: usize = 0;
/// Offset in an entry of the u32 site.
pub const OPEN_SITE_AT: usize = 8;
/// Offset in an entry of the u32 length of the name.
pub const OPEN_NAME_LEN_AT: usize = 12;
/// Offset of the name in a stack entry.
pub const STACK_NAME_AT: usize = 16;
/// Maximum number of name bytes in a stack entry.
pub const STACK_NAME_BYTES: usize = OPEN_TEXT_AT - STACK_NAME_AT;
/// Offset in a lane entry of the u64 `closes_at`.
pub const LANE_CLOSES_AT: usize = 16;
/// Offset in a lane entry of the u32 closing slot.
pub const LANE_CLOSING_SLOT_AT: usize = 24;
/// Offset in a lane entry of the u32 lane, plus 1, of the parent span.
pub const LANE_PARENT_AT: usize = 28;
/// Offset of the name in a lane entry.
pub const LANE_NAME_AT: usize = 32;
/// Maximum number of name bytes in a lane entry.
pub const LANE_NAME_BYTES: usize = OPEN_TEXT_AT - LANE_NAME_AT;

/// Returns the number of open-span entries in a chunk of the ring file that is `bytes` long. The
/// entries are followed by a text area of `text_bytes` for each of them.
pub const fn chunk_entries(bytes: usize, text_bytes: usize) -> usize {
    bytes.saturating_sub(CHUNK_HEAD_BYTES) / (OPEN_ENTRY_BYTES + text_bytes)
}

/// Packs the mark that a span ends while later ones are open into the u64 of a slot. The span has
/// ended once a line after position `head` is published. Its `depth` is below [`MAX_DEPTH`].
pub const fn ending(head: u64, depth: u64) -> u64 {
    head << 8 | (depth + 1)
}

/// Returns the depth of the span that a mark made by [`ending`] has ended. `head` is the position
/// after the slot's last published line. Returns `None` if the span's line is not published yet, or
/// if there is no mark.
pub fn ended_depth(ending: u64, head: u64) -> Option<usize> {
    let depth = usize::try_from(ending & 0xff).ok()?.checked_sub(1)?;
    (head > ending >> 8).then_some(depth)
}

/// Packs the state of a slot into a u64, so that one store publishes it: the `head` (the position
/// after the last published line), the `depth` (the number of open spans), and a check byte that
/// depends on `key`.
#[inline(always)]
pub const fn state(head: u64, depth: u64, key: u64) -> u64 {
    let value = head << 8 | depth;
    value << 8 | check(value, key)
}

/// Unpacks the position after the last published line and the number of open spans from the state
/// of a slot. Returns `None` if the check byte does not match.
pub fn head_and_depth(state: u64, key: u64) -> Option<(u64, u64)> {
    let value = state >> 8;
    (state & 0xff == check(value, key)).then_some((value >> 8, value & 0xff))
}

/// Returns the key with which the check byte of a slot's state is computed. The state of another
/// slot therefore fails the check.
pub const fn key(slot: u32, generation: u32) -> u64 {
    ((slot as u64 + 1) << 32) ^ generation as u64
}

/// Computes the check byte of a slot's state: the top byte of a product. The factor has no eight
/// equal bits in a row, so a change of any single bit shows.
#[inline(always)]
const fn check(value: u64, key: u64) -> u64 {
    (value ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

/// Computes the checksum of a ring file's header. The checksum field itself counts as 0.
pub fn header_sum(header: &[u8; HEADER_BYTES]) -> u32 {
    let mut header = *header;
    header[SUM_AT..SUM_AT + 4].fill(0);
    low_half(XxHash3_64::oneshot(&header))
}

/// Computes the checksum of the header fields that locate the ring's loss table and count table.
pub fn tables_sum(words: &[u8; TABLES_SUM_AT - LOSSES_OFFSET_AT]) -> u32 {
    low_half(XxHash3_64::oneshot(words))
}

/// Computes the checksum of an entry of a directory or of a link to a chunk. `slot` is the seed,
/// `offset` and `size` locate a part of the ring file.
pub fn entry_sum(slot: u32, offset: u64, size: u32) -> u32 {
    let mut bytes = [0; ENTRY_SUM_AT];
    bytes[..ENTRY_SIZE_AT].copy_from_slice(&offset.to_ne_bytes());
    bytes[ENTRY_SIZE_AT..].copy_from_slice(&size.to_ne_bytes());
    low_half(XxHash3_64::oneshot_with_seed(u64::from(slot), &bytes))
}

/// Returns the time in ns of the first lost event in an entry of the count table. While one count
/// is being reported, the next one may begin with no first time (0), or with a first time after its
/// last.
pub fn first_lost(first_ns: u64, last_ns: u64) -> u64 {
    match first_ns {
        0 => last_ns,
        first_ns => first_ns.min(last_ns),
    }
}

/// Returns the lower 32 bits of a hash.
fn low_half(sum: u64) -> u32 {
    u32::try_from(sum & u64::from(u32::MAX)).unwrap_or(0)
}
