//! Lost lines: counted by cause, and reported in the trace.

use crate::text::line::{events_in_line, is_metadata, line_start_ns, number_after};
use sa_format::LANE_BASE;
use sa_format::loss::{Cause, CountedLoss, LossRecord};

/// Maximum size in bytes of the record of a loss, with or without a position.
pub(crate) const MAX_RECORD_BYTES: u64 = 512;

/// Positions of a slot whose lines are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) cause: Cause,
    /// The thread that lost its events; 0 if there were several or none.
    pub(crate) tid: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) events: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Loss {
    /// Describes the loss of `lines`, which begin at position `from` of their slot. Counts their
    /// events, including the ones that a loss record among them reports, and reads the times of the
    /// first and the last event. Lines without a time get `now_ns`.
    pub(crate) fn from_lines(cause: Cause, from: u64, lines: &[u8], now_ns: u64) -> Loss {
        let mut loss = Loss {
            cause,
            tid: 0,
            from,
            to: from + lines.len() as u64,
            events: 0,
            first_ns: 0,
            last_ns: now_ns,
        };
        let lines = lines.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty() && !is_metadata(line)) {
            loss.events += events_in_line(line);
            let at_ns = line_start_ns(line).unwrap_or(now_ns);
            loss.first_ns = match loss.first_ns {
                0 => at_ns,
                first_ns => first_ns.min(at_ns),
            };
            loss.last_ns = at_ns;
            if loss.tid == 0 {
                loss.tid = thread_in(line);
            }
        }
        if loss.first_ns == 0 {
            loss.first_ns = now_ns; // there were no events among the lines
        }
        loss
    }

    /// Returns the `sa_loss` record of the loss as a line. `slot` and `generation` identify the
    /// stream of lines in which the lost ones are missing.
    pub(crate) fn line(&self, pid: u32, slot: u32, generation: u32) -> Vec<u8> {
        let loss = CountedLoss {
            pid,
            tid: if slot == 0 { 0 } else { self.tid },
            cause: self.cause,
            count: self.events,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            place: Some((slot, generation, self.from, self.to)),
            error: 0,
        };
        loss.line()
    }
}

/// Returns the tid of an event's line if it is that of a kernel thread. Returns 0 for the line of a
/// lane or track.
fn thread_in(line: &[u8]) -> u32 {
    let tid = number_after(line, br#""tid":"#).and_then(|tid| u32::try_from(tid).ok());
    tid.filter(|tid| *tid < LANE_BASE).unwrap_or(0)
}

/// Returns the line of the record which says that recording has stopped at `at_ns`, because the
/// process has used up its share of the disk. Later losses are recorded as far as they can be
/// counted.
pub(crate) fn stopped_line(pid: u32, at_ns: u64) -> Vec<u8> {
    let record = LossRecord {
        cause: Cause::DiskBound.name().into(),
        stopped: true,
        ..LossRecord::default()
    };
    process_line(pid, at_ns, &record)
}

/// Returns a loss record about the whole process as a line. `at_ns` is the time of the record in
/// ns.
pub(crate) fn process_line(pid: u32, at_ns: u64, record: &LossRecord<'_>) -> Vec<u8> {
    let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
    record.line((pid.into(), pid.into()), at_ns)
}
