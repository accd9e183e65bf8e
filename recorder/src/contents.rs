//! What a segment holds, counted while it is written: it is told when the segment is removed.

use crate::loss::{Cause, is_metadata};

/// How every loss record starts, up to the pid.
const INSTANT: &[u8] = br#"{"ph":"i""#;

/// What one segment holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Bytes on disk.
    pub(crate) bytes: u64,
    /// Events, and those that its loss records tell of.
    pub(crate) events: u64,
    /// Up to which position it holds each slot, by slot; 0 where it holds nothing of it.
    pub(crate) reached: Vec<u64>,
    /// When it was begun, and when it was full.
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

impl Contents {
    /// Counts a block that was written: its slot and the position it ends at, unless it has none, and its events.
    pub(crate) fn add(&mut self, block: Option<(u32, u64)>, events: u64) {
        self.events += events;
        if let Some((slot, end)) = block {
            self.reach(slot, end);
        }
    }

    /// Notes up to which position it holds, or tells of, a slot.
    pub(crate) fn reach(&mut self, slot: u32, end: u64) {
        let slot = slot as usize;
        if self.reached.len() <= slot {
            self.reached.resize(slot + 1, 0);
        }
        self.reached[slot] = self.reached[slot].max(end);
    }

    /// Joins what was written later.
    pub(crate) fn append(&mut self, later: &Contents) {
        self.bytes += later.bytes;
        self.events += later.events;
        if self.reached.len() < later.reached.len() {
            self.reached.resize(later.reached.len(), 0);
        }
        for (reached, later) in self.reached.iter_mut().zip(&later.reached) {
            *reached = (*reached).max(*later);
        }
        if self.began_ns == 0 {
            self.began_ns = later.began_ns;
        }
        self.ended_ns = later.ended_ns;
    }
}

/// Counts the events of a block. `plain` says that every line is one: then no line is looked at.
pub(crate) fn events(lines: &[u8], plain: bool) -> u64 {
    if plain {
        return bytecount::count(lines, b'\n') as u64;
    }
    lines.split(|byte| *byte == b'\n').map(event).sum()
}

/// The events that one line stands for: none if it is metadata, those that it tells of if it is a loss record.
pub(crate) fn event(line: &[u8]) -> u64 {
    if line.is_empty() || is_metadata(line) {
        return 0;
    }
    told(line).unwrap_or(1)
}

/// The events of a block that are lost with it, without those that its loss records tell: they are lost already.
pub(crate) fn own_events(lines: &[u8]) -> u64 {
    let of = |line: &[u8]| if told(line).is_some() { 0 } else { event(line) };
    lines.split(|byte| *byte == b'\n').map(of).sum()
}

/// The events that a loss record says are lost; those of clamped durations are not.
fn told(line: &[u8]) -> Option<u64> {
    if !line.starts_with(INSTANT) {
        return None;
    }
    let key = br#""name":"sa_loss","cat":"sa_profile","args":{"cause":""#;
    let at = memchr::memmem::find(line, key)? + key.len();
    let rest = &line[at..];
    let (cause, rest) = rest.split_at(memchr::memchr(b'"', rest)?);
    if cause == Cause::Clamped.name().as_bytes() {
        return Some(0);
    }
    let digits = rest.strip_prefix(br#"","events":"#)?;
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.copied().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::loss::LossRecord;
    use crate::loss::Loss;

    #[test]
    fn losses_count_as_what_they_tell() {
        let span = "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":5.250,\"dur\":1.000}\n";
        let own = "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":5.250,\"s\":\"t\",\"name\":\"sa_losses\",\"cat\":\"\"}\n";
        let name = "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\"}\n";
        let loss = Loss {
            cause: Cause::DiskFull,
            tid: 0,
            from: 5,
            to: 9,
            events: 12,
            first_ns: 1,
            last_ns: 2,
        };
        let loss = loss.line(1, 0, 0);
        let counted = |cause, count| {
            let record = LossRecord {
                pid: 1,
                tid: 0,
                cause,
                count,
                first_ns: 5,
                last_ns: 5,
                place: None,
                error: 0,
            };
            record.line()
        };
        let clamped = counted(Cause::Clamped, 3);
        let busy = counted(Cause::Busy, 30);
        let children = counted(Cause::ChildrenRefused, 9);
        for (line, count) in [
            (span, 1),
            (own, 1),
            (name, 0),
            (&loss, 12),
            (&clamped, 0),
            (&busy, 30),
            (&children, 0),
            ("\n", 0),
        ] {
            assert_eq!(events(line.as_bytes(), false), count, "{line}");
        }
        let all = [span, name, &loss, own].concat();
        assert_eq!(events(all.as_bytes(), false), 14);
        assert_eq!(
            own_events(all.as_bytes()),
            2,
            "those of the loss are lost already"
        );
        assert_eq!(events([span, own].concat().as_bytes(), true), 2);
    }
}
