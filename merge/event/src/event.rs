//! An event: its line, and the spans of the members in it.

use crate::json::{Fields, Members, Scanner, scan_object};
use sa_format::{
    Anchor, BlockHeader, End, FragmentHeader, Phase, Record, RemovedStreams, TrackRecord,
};
use trace_base::number;

/// Members that describe an event. The recorder writes them in this order, after the thread and the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// `name`
    Name,
    /// `cat`
    Category,
    /// `args`
    Args,
}

const WHAT: [&[u8]; 3] = [br#","name":"#, br#","cat":"#, br#","args":"#];

/// An event, with the members that the merge needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Line without its newline.
    pub line: &'a [u8],
    /// Phase.
    pub phase: Phase,
    /// Process id in the line. A text id is hashed to a negative number.
    pub pid: i64,
    /// Thread id, or the process id if the line has no thread id.
    pub tid: i64,
    /// Time in ns in the line, or 0 for metadata.
    pub ts_ns: i64,
    /// Duration in ns, or 0 for events that are not complete events.
    pub dur_ns: i64,
    /// Spans of the members in the line.
    pub fields: Fields,
    /// True if the duration has to be written again, because it is a string or not a whole number of ns.
    pub rounds_dur: bool,
}

impl<'a> Event<'a> {
    /// Creates an event of a process and thread without times.
    #[inline(always)]
    pub fn untimed(line: &'a [u8], phase: Phase, thread: (i64, i64), fields: Fields) -> Event<'a> {
        let (pid, tid) = thread;
        Event {
            line,
            phase,
            pid,
            tid,
            ts_ns: 0,
            dur_ns: 0,
            fields,
            rounds_dur: false,
        }
    }

    /// Returns the same event with another line, such as a mended one.
    pub fn in_line<'b>(&self, line: &'b [u8]) -> Event<'b>
    where
        'a: 'b,
    {
        Event {
            line,
            fields: scan_object(line).unwrap_or_default(),
            ..*self
        }
    }

    /// Returns true if this is metadata, which has no time.
    #[inline]
    pub fn is_metadata(&self) -> bool {
        self.phase == Phase::Metadata
    }

    /// Returns true if each part of the trace contains this event, regardless of its time. Metadata has no time, and viewers need all events of a CPU profile
    /// (`P`) for the times of its samples.
    #[inline]
    pub fn is_in_every_part(&self) -> bool {
        matches!(self.phase, Phase::Metadata | Phase::Sample)
    }

    /// Returns the name without its quotes. Escapes are not decoded.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        number::unquoted(self.fields.name.slice(self.line))
    }

    /// Returns the JSON of name, category and args, up to the given member. A member is empty if it is not where the recorder writes it.
    #[inline]
    pub fn members_in_order(&self, last: What) -> [&'a [u8]; 3] {
        self.in_order(last).0
    }

    /// Returns the JSON of name and category, and the line from its args on, without scanning the args.
    #[inline]
    pub fn members_up_to_args(&self) -> [&'a [u8]; 3] {
        let (mut found, at) = self.in_order(What::Category);
        let rest = self.line.get(at..).unwrap_or_default();
        found[2] = rest.strip_prefix(WHAT[2]).unwrap_or_default();
        found
    }

    /// Returns the members, and the offset after the last one.
    #[inline]
    fn in_order(&self, last: What) -> ([&'a [u8]; 3], usize) {
        let Fields {
            ts, dur, tid, id2, ..
        } = self.fields;
        let placed = [tid, ts, dur, id2, self.fields.name].map(|member| member.end);
        let placed = placed.into_iter().max().unwrap_or(0);
        let mut scanner = Scanner::lenient(self.line, placed);
        let _ = scanner.literal(br#","bp":"e""#);
        let mut found = [&[][..]; 3];
        for (value, key) in found.iter_mut().zip(&WHAT[..=last as usize]) {
            if scanner.literal(key).is_some() {
                let start = scanner.at;
                if scanner.value(1).is_none() {
                    return (found, self.line.len());
                }
                *value = &self.line[start..scanner.at];
            }
        }
        (found, scanner.at)
    }

    /// Returns true for an instant that viewers draw on its process or on all processes, instead of its thread.
    pub fn is_instant_of_process(&self) -> bool {
        let is_instant = matches!(self.phase, Phase::Instant | Phase::LegacyInstant);
        is_instant && matches!(self.scope(), b"\"p\"" | b"\"g\"")
    }

    /// Returns the scope of an instant as JSON, or nothing if it has no scope.
    fn scope(&self) -> &'a [u8] {
        // Recorders write the scope after the time, or after the phase.
        for end in [self.fields.ts.end, self.fields.ph.end] {
            if let Some(after) = self.line[end..].strip_prefix(br#","s":"#) {
                return after.get(..3).unwrap_or_default();
            }
        }
        let scope = Members::new(self.line).find(|(key, _)| *key == b"s");
        scope.map_or(&[], |(_, value)| value)
    }

    /// Returns true if this is an unfinished span (FORMAT.md §2).
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.phase == Phase::Begin
            && memchr::memmem::find(self.line, br#""unfinished":true"#).is_some()
    }
}

/// Names of the format's own records, which the trace leaves out.
const OWN_RECORDS: [&str; 6] = [
    FragmentHeader::NAME,
    Anchor::NAME,
    RemovedStreams::NAME,
    BlockHeader::NAME,
    End::NAME,
    TrackRecord::NAME,
];

/// Category of the tracks that a program added to a merged trace, such as findings. They were not recorded.
pub const ADDED: &str = "sa_findings";

/// Returns true if an event is one of the format's own records, which the trace leaves out.
#[inline]
pub fn is_left_out(event: &Event<'_>) -> bool {
    event.is_metadata() && own_record(event).is_some()
}

/// Returns the name of the event's record if it is one of the format's own records.
pub fn own_record(event: &Event<'_>) -> Option<&'static str> {
    let name = event.name();
    if !name.starts_with(b"sa_") {
        return None;
    }
    OWN_RECORDS.into_iter().find(|own| own.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn instants_of_processes_differ_from_instants_of_threads() {
        for (members, expected) in [
            (r#""ph":"i","s":"p","pid":1,"ts":1"#, true),
            (r#""ph":"i","pid":1,"ts":1,"s":"g""#, true),
            (r#""ph":"I","pid":1,"s":"g","ts":1"#, true),
            (r#""ph":"i","pid":1,"ts":1,"s":"t""#, false),
            (r#""ph":"i","pid":1,"ts":1,"args":{"s":"p"}"#, false),
            (r#""ph":"B","pid":1,"ts":1,"s":"p""#, false),
        ] {
            let line = format!("{{{members}}}");
            let event = crate::line::parse(line.as_bytes()).unwrap();
            assert_eq!(event.is_instant_of_process(), expected, "{members}");
        }
    }
}
