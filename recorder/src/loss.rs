//! What could not be kept: counted by cause, told in the trace.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::{LOSS_RECORD, OWN_CATEGORY};

/// Why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    DiskFull,
    FileSizeLimit,
    WriteError,
    Busy,
    FragmentRemoved,
    DiskBound,
    Signal,
    Threads,
    Clamped,
    TooLarge,
    TooManyOpen,
}

impl Cause {
    pub(crate) const COUNTED: [Cause; 6] = [
        Cause::Busy,
        Cause::Signal,
        Cause::Threads,
        Cause::Clamped,
        Cause::TooLarge,
        Cause::TooManyOpen,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::DiskFull => "disk_full",
            Cause::FileSizeLimit => "file_size_limit",
            Cause::WriteError => "write_error",
            Cause::Busy => "busy",
            Cause::FragmentRemoved => "fragment_removed",
            Cause::DiskBound => "disk_bound",
            Cause::Signal => "signal",
            Cause::Threads => "threads",
            Cause::Clamped => "clamped",
            Cause::TooLarge => "too_large",
            Cause::TooManyOpen => "too_many_open",
        }
    }
}

/// Positions of a slot that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) cause: Cause,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) events: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Loss {
    /// Joins a later loss of the same slot to this one.
    pub(crate) fn and(self, later: Loss) -> Loss {
        Loss {
            to: later.to,
            events: self.events + later.events,
            last_ns: later.last_ns,
            ..self
        }
    }

    /// Describes the loss of published lines: counts events and reads the times of the first and the last.
    pub(crate) fn of_lines(cause: Cause, from: u64, lines: &[u8], now_ns: u64) -> Loss {
        let mut loss = Loss {
            cause,
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
            loss.events += 1;
            let at_ns = line_time_ns(line).unwrap_or(now_ns);
            loss.first_ns = if loss.first_ns == 0 {
                at_ns
            } else {
                loss.first_ns.min(at_ns)
            };
            loss.last_ns = at_ns;
        }
        loss
    }

    /// The record that tells of the loss.
    pub(crate) fn line(&self, pid: u32, slot: u32, generation: u32) -> String {
        let span_us = self.last_ns.saturating_sub(self.first_ns) / 1000;
        let place = format!(
            r#","span_us":{span_us},"slot":{slot},"gen":{generation},"from":{},"to":{}"#,
            self.from, self.to
        );
        record(pid, self.first_ns, self.cause, self.events, &place)
    }
}

/// The record of events that never had a position.
pub(crate) fn counted_line(pid: u32, at_ns: u64, cause: Cause, events: u64) -> String {
    record(pid, at_ns, cause, events, "")
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

pub(crate) fn is_metadata(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"M""#)
}

/// Reads the `ts` of a canonical line.
fn line_time_ns(line: &[u8]) -> Option<u64> {
    let key = br#""ts":"#;
    let at = line.windows(key.len()).position(|window| window == key)? + key.len();
    let mut digits = line[at..]
        .iter()
        .filter(|byte| **byte != b'.')
        .take_while(|byte| byte.is_ascii_digit());
    digits.try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Losses without a position, counted until they are told.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    untold: [AtomicU64; Cause::COUNTED.len()],
    total: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, cause: Cause) {
        if let Some(at) = Cause::COUNTED.iter().position(|counted| *counted == cause) {
            self.untold[at].fetch_add(1, Ordering::Relaxed);
        }
        if cause != Cause::Clamped {
            self.add_total(1);
        }
    }

    pub(crate) fn add_total(&self, events: u64) {
        self.total.fetch_add(events, Ordering::Relaxed);
    }

    /// Events lost since the process began.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes what was not told yet.
    pub(crate) fn take(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::COUNTED
            .iter()
            .zip(&self.untold)
            .map(|(cause, count)| (*cause, count.swap(0, Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
    }
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
    }

    #[test]
    fn counters_are_told_once() {
        let counters = Counters::default();
        counters.count(Cause::Signal);
        counters.count(Cause::Clamped);
        assert_eq!(
            counters.take().collect::<Vec<_>>(),
            [(Cause::Signal, 1), (Cause::Clamped, 1)]
        );
        assert_eq!((counters.take().count(), counters.total()), (0, 1));
    }
}
