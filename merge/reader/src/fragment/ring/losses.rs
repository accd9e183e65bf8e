//! Losses in a ring's tables that no record has reported yet: its loss table and its count table (FORMAT.md §3).

use super::{RingBytes, RingHead, Slot, TRIES, bytes_at, entry_u32, entry_u64, read_entry};
use super::{stable_bytes_at, u32_at, u64_at};
use sa_format::loss::{Cause, CountedLoss, LossRecord};
use sa_format::ring as layout;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) type Entry = [u8; layout::LOSS_ENTRY_BYTES];

/// Location of the tables; zero if the writer does not have them.
#[derive(Clone, Copy, Default)]
pub(super) struct LossTables {
    losses: u64,
    slots: u32,
    counts: u64,
    causes: u32,
    /// Position of slot 0 up to which records were written when the counts were read.
    pub(super) read_at: u64,
}

impl LossTables {
    pub(super) fn read(source: &dyn RingBytes) -> LossTables {
        let words = bytes_at(source, layout::LOSSES_OFFSET_AT as u64);
        let sum = u32_at(source, layout::TABLES_SUM_AT as u64);
        let Some(words) = words.filter(|words| sum == Some(layout::tables_sum(words))) else {
            return LossTables::default();
        };
        let word = |at: usize| entry_u32(&words, at - layout::LOSSES_OFFSET_AT);
        LossTables {
            losses: word(layout::LOSSES_OFFSET_AT).into(),
            slots: word(layout::LOSSES_COUNT_AT),
            counts: word(layout::COUNTS_OFFSET_AT).into(),
            causes: word(layout::COUNTS_COUNT_AT),
            read_at: 0,
        }
    }

    /// Returns the loss table's entry for a slot.
    pub(super) fn entry(&self, source: &dyn RingBytes, slot: u32) -> Option<Entry> {
        (slot < self.slots).then(|| stable_entry(source, self.losses, slot))?
    }

    /// Returns the losses that the ring only counts by cause, without positions, and that no record reports yet. Sets `read_at` to the position of
    /// slot 0 at that moment.
    pub(super) fn counts(&mut self, source: &dyn RingBytes, head: &RingHead) -> Vec<CountedLoss> {
        let mut counts = Vec::new();
        for _ in 0..TRIES {
            let before = first_head(source, head);
            self.read_at = before.unwrap_or(0);
            let causes = Cause::ALL
                .into_iter()
                .filter(|cause| cause.number() < self.causes);
            let count = |cause: Cause| {
                let entry = stable_entry(source, self.counts, cause.number())?;
                self.count(&entry, cause, head.pid)
            };
            counts = causes.filter_map(count).collect();
            if first_head(source, head) == before {
                break; // no record was written meanwhile
            }
        }
        counts
    }

    fn count(&self, entry: &Entry, cause: Cause, pid: u32) -> Option<CountedLoss> {
        let reported_count_at = match is_reported(entry, self.read_at) {
            true => layout::COUNT_NEXT_AT,
            false => layout::COUNT_REPORTED_AT,
        };
        let counted = entry_u64(entry, layout::COUNT_EVENTS_AT);
        let count = counted.checked_sub(entry_u64(entry, reported_count_at))?;
        let loss = CountedLoss {
            error: match cause {
                Cause::ChildrenRefused => entry_u32(entry, layout::COUNT_ERROR_AT),
                _ => 0,
            },
            ..CountedLoss::from_entry(pid, cause, count, |at| entry_u64(entry, at))
        };
        (count > 0 && is_possible(&loss)).then_some(loss)
    }
}

/// Returns the events that a slot (the ring area of one thread) has lost and no loss record reports yet, or `None` if there are none or the numbers
/// are implausible. `entry` is the slot's loss table entry, `number` the slot number, and `copy` the slot as read from the ring. `first_head` is the
/// position up to which slot 0 contained records. If `copy` is `None`, all events that the entry counts are taken as lost.
pub(super) fn slot_loss(
    entry: &Entry,
    number: u32,
    copy: Option<&Slot>,
    pid: u32,
    first_head: u64,
) -> Option<CountedLoss> {
    let cause = Cause::from_number(entry_u32(entry, layout::LOSS_CAUSE_AT))?;
    if is_reported(entry, first_head) {
        return None;
    }
    let (from, to) = (
        entry_u64(entry, layout::LOSS_FROM_AT),
        entry_u64(entry, layout::LOSS_TO_AT),
    );
    let flushed = copy.map_or(u64::MAX, |slot| slot.from);
    let events = match to <= flushed {
        true => layout::LOSS_EVENTS_AT,
        false => layout::LOSS_BEFORE_AT,
    };
    let generation = copy.map_or(0, |slot| slot.generation);
    let loss = CountedLoss {
        pid,
        tid: entry_u32(entry, layout::LOSS_TID_AT),
        cause,
        count: entry_u64(entry, events),
        first_ns: entry_u64(entry, layout::LOSS_FIRST_AT),
        last_ns: entry_u64(entry, layout::LOSS_LAST_AT),
        place: Some((number, generation, from, to.min(flushed))),
        error: 0,
    };
    // A line is longer than the number of events that it counts for, except for the records in slot 0.
    let fits = |range: Range<u64>| {
        let bytes = range.end.checked_sub(range.start);
        bytes.is_some_and(|bytes| bytes > 0 && (number == 0 || loss.count < bytes))
    };
    (fits(from..to.min(flushed)) && is_possible(&loss)).then_some(loss)
}

fn is_reported(entry: &Entry, first_head: u64) -> bool {
    let reported_at = entry_u64(entry, layout::LOSS_REPORTED_AT);
    reported_at != 0 && reported_at <= first_head
}

/// Returns true if a loss's times, count and error number are in a plausible range.
fn is_possible(loss: &CountedLoss) -> bool {
    loss.first_ns <= loss.last_ns
        && loss.last_ns >> 60 == 0
        && loss.count >> 48 == 0
        && i32::try_from(loss.error).is_ok()
}

/// Reads an entry that did not change while it was read.
fn stable_entry(source: &dyn RingBytes, table: u64, number: u32) -> Option<Entry> {
    if table == 0 || !table.is_multiple_of(8) {
        return None;
    }
    let at = table + u64::from(number) * layout::LOSS_ENTRY_BYTES as u64;
    stable_bytes_at(source, at)
}

/// Returns the current head of slot 0.
pub(super) fn first_head(source: &dyn RingBytes, head: &RingHead) -> Option<u64> {
    let (offset, _) = read_entry(source, 0, head.entry(0))?;
    let state = u64_at(source, offset + layout::SLOT_STATE_AT as u64)?;
    let generation = u32_at(source, offset + layout::SLOT_GENERATION_AT as u64)?;
    Some(layout::head_and_depth(state, layout::key(0, generation))?.0)
}

/// Losses that records reported after the ring was read.
#[derive(Default)]
pub(crate) struct ReportedLosses {
    slots: BTreeMap<(u32, u32), u64>,
    causes: BTreeSet<Cause>,
}

impl ReportedLosses {
    /// Parses the loss records among lines of slot 0 and adds the losses that they report.
    pub(crate) fn add_records(&mut self, lines: &[u8]) {
        let lines = lines.split(|byte| *byte == b'\n');
        let name = LossRecord::NAME.as_bytes();
        let is_loss = |line: &&[u8]| memchr::memmem::find(line, name).is_some();
        for record in lines.filter(is_loss).filter_map(LossRecord::parse) {
            match record.positions() {
                Some((stream, positions)) => {
                    let end = self.slots.entry(stream).or_default();
                    *end = positions.end.max(*end);
                }
                None => self.causes.extend(Cause::from_name(&record.cause)),
            }
        }
    }

    /// Returns true if one of the added records reports this loss.
    pub(crate) fn contains(&self, loss: &CountedLoss) -> bool {
        match loss.place {
            Some((slot, generation, _, to)) => {
                let end = self.slots.get(&(slot, generation));
                end.is_some_and(|end| *end >= to)
            }
            None => self.causes.contains(&loss.cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an entry for 5 lost events at positions 10 to 90. Of these, 3 were lost before the last time. A record that ends at `reported_at`
    /// reports them.
    fn entry(reported_at: u64) -> Entry {
        let mut entry = [0; layout::LOSS_ENTRY_BYTES];
        let words = [
            (layout::LOSS_BEFORE_AT, 3),
            (layout::LOSS_EVENTS_AT, 5),
            (layout::LOSS_FROM_AT, 10),
            (layout::LOSS_TO_AT, 90),
            (layout::LOSS_FIRST_AT, 1000),
            (layout::LOSS_LAST_AT, 2000),
            (layout::LOSS_REPORTED_AT, reported_at),
        ];
        for (at, word) in words {
            entry[at..at + 8].copy_from_slice(&u64::to_ne_bytes(word));
        }
        entry[layout::LOSS_CAUSE_AT] = 1;
        entry[layout::LOSS_TID_AT] = 9;
        entry
    }

    /// Returns the number of lost events and the end of their positions, for a slot that is flushed up to `flushed` while slot 0 is at `first_head`.
    fn lost(entry: &Entry, flushed: Option<u64>, first_head: u64) -> Option<(u64, u64)> {
        let copy = flushed.map(|from| Slot {
            from,
            ..Slot::default()
        });
        let loss = slot_loss(entry, 1, copy.as_ref(), 7, first_head)?;
        let (_, _, from, to) = loss.place?;
        assert_eq!((loss.tid, loss.cause, from), (9, Cause::DiskFull, 10));
        Some((loss.count, to))
    }

    #[test]
    fn issue_19_a_loss_counts_once_it_is_dropped_and_until_it_is_reported() {
        for (reported_at, flushed, first_head, expected) in [
            (0, Some(90), 0, Some((5, 90))),
            (0, Some(60), 0, Some((3, 60))),
            // Nothing is dropped yet, or the slot is not in the file.
            (0, Some(10), 0, None),
            (0, None, 0, Some((5, 90))),
            (400, Some(90), 399, Some((5, 90))),
            (400, Some(90), 400, None),
        ] {
            let found = lost(&entry(reported_at), flushed, first_head);
            assert_eq!(found, expected, "{reported_at} {flushed:?} {first_head}");
        }
        // Impossible numbers.
        for (at, byte) in [
            (layout::LOSS_CAUSE_AT, 99),
            (layout::LOSS_EVENTS_AT, 200),
            (layout::LOSS_FROM_AT, 91),
            (layout::LOSS_FIRST_AT + 1, 0xff),
        ] {
            let mut entry = entry(0);
            entry[at] = byte;
            assert_eq!(lost(&entry, Some(90), 0), None, "{at}");
        }
    }

    #[test]
    fn issue_19_records_beyond_the_copy_report_its_losses() {
        let loss = slot_loss(&entry(0), 1, None, 7, 0).unwrap();
        let counted = CountedLoss {
            place: None,
            ..loss
        };
        let reported = |record: &CountedLoss| {
            let mut losses = ReportedLosses::default();
            losses.add_records(&record.line());
            (losses.contains(&loss), losses.contains(&counted))
        };
        let ending_at = |to| CountedLoss {
            place: Some((1, 0, 10, to)),
            ..loss
        };
        assert_eq!(reported(&ending_at(90)), (true, false));
        assert_eq!(reported(&ending_at(89)), (false, false));
        assert_eq!(reported(&counted), (false, true));
    }
}
