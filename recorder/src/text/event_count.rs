//! How many events lines stand for.

use sa_format::loss::LossRecord;

/// How every loss record starts, up to the pid.
const INSTANT: &[u8] = br#"{"ph":"i""#;

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

/// Returns how many events a loss record reports as lost; changed events, such as those with a shortened text, do not count.
fn told(line: &[u8]) -> Option<u64> {
    if !line.starts_with(INSTANT) {
        return None;
    }
    memchr::memmem::find(line, br#""name":"sa_loss","cat":"sa_profile""#)?;
    Some(LossRecord::parse(line)?.lost_events())
}

/// Whether a line is a metadata record.
pub(crate) fn is_metadata(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"M""#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::loss::Loss;
    use sa_format::loss::{Cause, CountedLoss};

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
        let loss = String::from_utf8(loss.line(1, 0, 0)).unwrap();
        let counted = |cause, count| {
            let record = CountedLoss {
                pid: 1,
                tid: 0,
                cause,
                count,
                first_ns: 5,
                last_ns: 5,
                place: None,
                error: 0,
            };
            String::from_utf8(record.line()).unwrap()
        };
        let clamped = counted(Cause::Clamped, 3);
        let cut = counted(Cause::Cut, 3);
        let busy = counted(Cause::Busy, 30);
        let children = counted(Cause::ChildrenRefused, 9);
        for (line, count) in [
            (span, 1),
            (own, 1),
            (name, 0),
            (&loss, 12),
            (&clamped, 0),
            (&cut, 0),
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
