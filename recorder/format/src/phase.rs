//! Phases of Chrome trace events: the character that gives an event's kind.

/// The phase of an event that viewers show, or of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    /// A whole span with a duration.
    Complete = b'X',
    /// The beginning of a span on a thread.
    Begin = b'B',
    /// The end of a span on a thread.
    End = b'E',
    /// A point in time.
    Instant = b'i',
    /// A point in time, as older recorders write it.
    LegacyInstant = b'I',
    /// A mark, as browsers write it.
    Mark = b'R',
    /// Values of a counter.
    Counter = b'C',
    /// The name or another property of a process or thread.
    Metadata = b'M',
    /// A reading of two clocks.
    ClockSync = b'c',
    /// A sample, or a part of a CPU profile.
    Sample = b'P',
    /// The start of a flow.
    FlowStart = b's',
    /// A step of a flow.
    FlowStep = b't',
    /// The end of a flow.
    FlowEnd = b'f',
    /// The beginning of an async span.
    AsyncBegin = b'b',
    /// A point in time within an async span.
    AsyncInstant = b'n',
    /// The end of an async span.
    AsyncEnd = b'e',
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 16] = [
        Phase::Complete,
        Phase::Begin,
        Phase::End,
        Phase::Instant,
        Phase::LegacyInstant,
        Phase::Mark,
        Phase::Counter,
        Phase::Metadata,
        Phase::ClockSync,
        Phase::Sample,
        Phase::FlowStart,
        Phase::FlowStep,
        Phase::FlowEnd,
        Phase::AsyncBegin,
        Phase::AsyncInstant,
        Phase::AsyncEnd,
    ];

    /// Returns the phase whose character this is, or `None` if viewers do not show events of that
    /// kind.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Phase> {
        BY_BYTE[byte as usize]
    }

    /// Returns the phase as which an event with this character is shown. Perfetto silently skips
    /// the async phases of older versions of Chrome (`S`, `T`, `p`, `F`), so they become today's.
    #[inline]
    pub const fn modern(byte: u8) -> Option<Phase> {
        match byte {
            b'S' => Some(Phase::AsyncBegin),
            b'T' | b'p' => Some(Phase::AsyncInstant),
            b'F' => Some(Phase::AsyncEnd),
            byte => Phase::from_byte(byte),
        }
    }

    /// Returns the character that stands for the phase in an event, such as `X`.
    #[inline]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Returns true for the phases of spans on threads: one for a whole span, and two for its begin
    /// and its end.
    #[inline]
    pub const fn is_span(self) -> bool {
        matches!(self, Phase::Complete | Phase::Begin | Phase::End)
    }

    /// Returns true for the phases of instants, in the current and the older form.
    #[inline]
    pub const fn is_instant(self) -> bool {
        matches!(self, Phase::Instant | Phase::LegacyInstant)
    }

    /// Returns true for the phases of flow events: start, step and end.
    #[inline]
    pub const fn is_flow(self) -> bool {
        matches!(self, Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd)
    }

    /// Returns true for the phases of async events: begin, instant and end.
    #[inline]
    pub const fn is_async(self) -> bool {
        matches!(
            self,
            Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd
        )
    }

    /// Returns true if events of the phase have an id that connects them with others: flow and
    /// async events.
    #[inline]
    pub const fn has_id(self) -> bool {
        self.is_flow() || self.is_async()
    }
}

/// Phase of each character.
const BY_BYTE: [Option<Phase>; 256] = {
    let mut phases = [None; 256];
    let mut at = 0;
    while at < Phase::ALL.len() {
        phases[Phase::ALL[at] as usize] = Some(Phase::ALL[at]);
        at += 1;
    }
    phases
};
