//! What could not be kept: counted by cause, reported in the trace.

use crate::format::loss::{Cause, LossRecord};
use crate::format::{LANE_BASE, LOSS_RECORD, OWN_CATEGORY};
use crate::ring::counters::Untold;
use crate::text::event_count::{self, is_metadata};

/// Most bytes of the record of a loss that had a position, and of one that had none.
pub(crate) const MAX_RECORD_BYTES: u64 = 512;

/// Positions of a slot that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) cause: Cause,
    /// The thread whose events they are; 0 for several or none.
    pub(crate) tid: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) events: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Loss {
    /// Describes the loss of published lines: counts events, as those that it tells of a loss record among them, and reads the times of the
    /// first and the last.
    pub(crate) fn of_lines(cause: Cause, from: u64, lines: &[u8], now_ns: u64) -> Loss {
        let mut loss = Loss {
            cause,
            tid: 0,
            from,
            to: from + lines.len() as u64,
            events: 0,
            first_ns: 0,
            last_ns: now_ns,
        };
        for line in lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty() && !is_metadata(line))
        {
            loss.events += event_count::event(line);
            let at_ns = number(line, br#""ts":"#).unwrap_or(now_ns);
            loss.first_ns = if loss.first_ns == 0 {
                at_ns
            } else {
                loss.first_ns.min(at_ns)
            };
            loss.last_ns = at_ns;
            if loss.tid == 0 {
                loss.tid = thread_of(line);
            }
        }
        if loss.first_ns == 0 {
            loss.first_ns = now_ns; // no event was among them
        }
        loss
    }

    /// The record that tells of the loss.
    pub(crate) fn line(&self, pid: u32, slot: u32, generation: u32) -> String {
        let record = LossRecord {
            pid,
            tid: if slot == 0 { 0 } else { self.tid },
            cause: self.cause,
            count: self.events,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            place: Some((slot, generation, self.from, self.to)),
            error: 0,
        };
        record.line()
    }
}

/// The kernel's thread whose line it is, if it is one's.
fn thread_of(line: &[u8]) -> u32 {
    let tid = number(line, br#""tid":"#).and_then(|tid| u32::try_from(tid).ok());
    tid.filter(|tid| *tid < LANE_BASE).unwrap_or(0)
}

/// The record of events that never had a position.
pub(crate) fn counted_line(pid: u32, cause: Cause, untold: &Untold) -> String {
    let record = LossRecord {
        pid,
        tid: 0,
        cause,
        count: untold.count,
        first_ns: untold.first_ns,
        last_ns: untold.last_ns,
        place: None,
        error: untold.error,
    };
    record.line()
}

/// The record of everything that went with removed segments: those below `first`.
pub(crate) fn removed_line(
    pid: u32,
    first_ns: u64,
    last_ns: u64,
    events: u64,
    first: u32,
) -> String {
    let span_us = last_ns.saturating_sub(first_ns) / 1000;
    let place = format!(r#","span_us":{span_us},"first":{first}"#);
    record(pid, first_ns, Cause::DiskBound, events, &place)
}

/// The record that nothing more is kept: what comes is told later, as far as it can be counted.
pub(crate) fn stopped_line(pid: u32, at_ns: u64) -> String {
    record(pid, at_ns, Cause::DiskBound, 0, r#","stopped":true"#)
}

fn record(pid: u32, at_ns: u64, cause: Cause, events: u64, place: &str) -> String {
    let (us, rest, cause) = (at_ns / 1000, at_ns % 1000, cause.name());
    format!(
        r#"{{"ph":"i","pid":{pid},"tid":{pid},"ts":{us}.{rest:03},"s":"p","name":"{LOSS_RECORD}","cat":"{OWN_CATEGORY}","args":{{"cause":"{cause}","events":{events}{place}}}}}"#
    ) + "\n"
}

/// Reads a number of a canonical line, behind `key`; of a time in ns.
fn number(line: &[u8], key: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, key)? + key.len();
    let mut digits = line[at..]
        .iter()
        .filter(|byte| **byte != b'.')
        .take_while(|byte| byte.is_ascii_digit());
    digits.try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_count_events_and_read_times() {
        let lines = b"{\"ph\":\"M\",\"pid\":1}\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":5.250,\"dur\":1.000}\n{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":9.001,\"s\":\"t\"}\n";
        let loss = Loss::of_lines(Cause::DiskFull, 100, lines, 77);
        assert_eq!(
            (loss.events, loss.first_ns, loss.last_ns, loss.to),
            (2, 5250, 9001, 100 + lines.len() as u64)
        );
        let record: serde_json::Value = serde_json::from_str(&loss.line(1, 3, 0)).unwrap();
        assert_eq!(record["args"]["cause"], "disk_full");
        assert_eq!(
            (&record["args"]["from"], &record["args"]["slot"]),
            (&100.into(), &3.into())
        );
        assert_eq!((&record["tid"], &record["s"]), (&1.into(), &"t".into()));
    }
}
