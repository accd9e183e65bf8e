//! Writes lines of spans without an end, and reads times and numbers from lines of events.

use std::io::Write;

use crate::text::record::Growing;
use sa_format::loss::LossRecord;

/// Builds the line of a span without an end, which begins at `ts_ns` on thread or lane `tid`.
/// `names` is `"name":"…","cat":"…"`, and `args` is JSON without the braces. If there is not enough
/// memory, counts that and returns an empty line.
pub(crate) fn begin_line((pid, tid): (u32, u32), ts_ns: u64, names: &[u8], args: &[u8]) -> Vec<u8> {
    let (us, ns) = (ts_ns / 1000, ts_ns % 1000);
    let mut line = Growing::default();
    // Writing to it cannot fail.
    let _ = write!(
        line,
        r#"{{"ph":"B","pid":{pid},"tid":{tid},"ts":{us}.{ns:03},"#
    );
    line.add(names);
    if !args.is_empty() {
        line.add(br#","args":{"#);
        line.add(args);
        line.add(b"}");
    }
    line.add(b"}\n");
    line.into_line()
}

/// Returns the start in ns of the event in a line, or `None` if the line contains metadata.
pub(crate) fn line_start_ns(line: &[u8]) -> Option<u64> {
    if line.is_empty() || is_metadata(line) {
        return None;
    }
    number_after(line, br#""ts":"#)
}

/// Returns the number that follows `key`, such as `"tid":`, in a line as the recorder writes it. A
/// time in µs with three decimals is returned in ns.
pub(crate) fn number_after(line: &[u8], key: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, key)? + key.len();
    let mut digits = line[at..]
        .iter()
        .filter(|byte| **byte != b'.')
        .take_while(|byte| byte.is_ascii_digit());
    digits.try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Beginning of every loss record, up to the pid.
const INSTANT: &[u8] = br#"{"ph":"i""#;

/// Counts the events in a block of lines. If `plain` is true, every line is known to be one event,
/// and the lines are not examined.
pub(crate) fn count_events(lines: &[u8], plain: bool) -> u64 {
    if plain {
        return bytecount::count(lines, b'\n') as u64;
    }
    lines.split(|byte| *byte == b'\n').map(events_in_line).sum()
}

/// Returns the number of events that a line stands for: 0 for metadata, the number of lost events
/// for a loss record, and 1 for any other line.
pub(crate) fn events_in_line(line: &[u8]) -> u64 {
    if line.is_empty() || is_metadata(line) {
        return 0;
    }
    reported_loss(line).unwrap_or(1)
}

/// Counts the events that would be lost with a block of lines. Does not count those that loss
/// records in the block report, because they are lost already.
pub(crate) fn count_unreported_events(lines: &[u8]) -> u64 {
    let lines = lines.split(|byte| *byte == b'\n');
    let own = lines.filter(|line| reported_loss(line).is_none());
    own.map(events_in_line).sum()
}

/// Returns the number of events that a line reports as lost if it is a loss record, and `None` for
/// any other line. Changed events, such as those with a shortened text, do not count.
fn reported_loss(line: &[u8]) -> Option<u64> {
    if !line.starts_with(INSTANT) {
        return None;
    }
    memchr::memmem::find(line, br#""name":"sa_loss","cat":"sa_profile""#)?;
    Some(LossRecord::parse(line)?.lost_events())
}

/// Returns true if a line is a metadata record, which is not an event.
pub(crate) fn is_metadata(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"M""#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::loss::Loss;
    use sa_format::loss::{Cause, CountedLoss};

    #[test]
    fn a_loss_counts_the_events_that_it_reports() {
        let span = "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":5.250,\"dur\":1.000}\n";
        let own = "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":5.250,\"s\":\"t\",\"name\":\"sa_losses\",\"cat\":\"\"}\n";
        let name = "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\"}\n";
        let loss = Loss::from_lines(Cause::DiskFull, 5, span.repeat(12).as_bytes(), 1);
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
        for (line, count) in [
            (span, 1),
            (own, 1),
            (name, 0),
            (&loss, 12),
            (&counted(Cause::Clamped, 3), 0),
            (&counted(Cause::Cut, 3), 0),
            (&counted(Cause::Busy, 30), 30),
            (&counted(Cause::ChildrenRefused, 9), 0),
            ("\n", 0),
        ] {
            assert_eq!(count_events(line.as_bytes(), false), count, "{line}");
        }
        let all = [span, name, &loss, own].concat();
        assert_eq!(count_events(all.as_bytes(), false), 14);
        // The events of the loss record are lost already.
        assert_eq!(count_unreported_events(all.as_bytes()), 2);
        assert_eq!(count_events([span, own].concat().as_bytes(), true), 2);
    }
}
