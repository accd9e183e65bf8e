//! What makes viewers drop things, one name for each reason.

use serde::{Serialize, Serializer};

/// Why viewers would lose something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// Text that viewers cannot read: nothing is loaded.
    NotJson,
    /// Text that is no JSON, but that Perfetto reads.
    LooseJson,
    /// The end is missing.
    CutOff,
    /// JSON, but no trace.
    NotATrace,
    /// A number that no double holds: nothing is loaded.
    BadNumber,
    /// A time that is no number: nothing is loaded.
    BadTime,
    /// A pid that stands twice, once as a text: nothing is loaded.
    PidTwice,
    /// Half a character as an escape, beside an escaped quote: nothing is loaded, or loading never ends.
    HalfCharacter,
    /// A text that ends with a backslash: nothing is loaded.
    LastBackslash,
    /// Commas that JSON does not allow, or none where it wants one.
    Comma,
    /// A trace compressed in several pieces.
    GzipMembers,
    /// Text behind the end.
    AfterEnd,
    /// An event without a phase.
    NoPhase,
    /// A phase that is not shown.
    UnknownPhase,
    /// An event without a time.
    NoTs,
    /// A time below zero.
    NegativeTs,
    /// A complete span without a duration.
    NoDur,
    /// A duration below zero.
    NegativeDur,
    /// A span that overlaps another of its thread.
    Overlap,
    /// An end that no begin belongs to.
    EndWithoutBegin,
    /// A span that began in another and ends after it.
    MisplacedEnd,
    /// A span inside too many others.
    TooDeep,
    /// An instant that names no thread or process.
    InstantWithoutThread,
    /// A counter's value that is no number.
    CounterValue,
    /// A counter whose values no viewer can read: loading never ends.
    CounterEndless,
    /// Metadata with a number that no double holds: loading never ends.
    MetadataEndless,
    /// A name of a process or thread that is no text.
    BadName,
    /// An async event that names no id or no process.
    AsyncWithoutId,
    /// An `id2` with a number that no double holds.
    BadId2,
    /// An arrow whose id is none.
    FlowId,
    /// A second start of an arrow.
    FlowTwice,
    /// An arrow that never started.
    FlowWithoutStart,
    /// An arrow that never started, and ends at the next span.
    FlowFromElsewhere,
    /// An arrow's start, step or end on a thread that has no span yet.
    FlowWithoutSpan,
    /// An arrow's end after which its thread has no span.
    FlowWithoutNextSpan,
    /// An arrow of a span that says neither in nor out.
    FlowWithoutDirection,
    /// A `bind_id` that is none.
    BindId,
    /// A `bind_id` that is taken for another arrow.
    BindIdClash,
    /// An id that does not fit 32 bits.
    IdOutOfRange,
    /// A thread 0 beside a main thread.
    TidZero,
    /// A time that a double cannot hold.
    ImpreciseTime,
}

/// What comes of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Perfetto loads nothing of the file, or of an array without an object around it only what stands before.
    NotLoaded,
    /// Viewers drop it.
    Lost,
    /// Viewers show it, but not as it is meant.
    ShownWrongly,
    /// Perfetto shows all of it; chrome://tracing loads nothing of the file.
    RefusedByChrome,
}

impl Rule {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// What it means for those who look at the trace.
    pub fn meaning(self) -> &'static str {
        self.words().1
    }

    /// What it does to the trace.
    pub fn kind(self) -> Kind {
        match self {
            Rule::NotJson
            | Rule::CutOff
            | Rule::NotATrace
            | Rule::BadNumber
            | Rule::BadTime
            | Rule::PidTwice
            | Rule::HalfCharacter
            | Rule::LastBackslash
            | Rule::CounterEndless
            | Rule::MetadataEndless => Kind::NotLoaded,
            Rule::LooseJson | Rule::Comma | Rule::GzipMembers | Rule::AfterEnd => {
                Kind::RefusedByChrome
            }
            Rule::NegativeDur
            | Rule::MisplacedEnd
            | Rule::TooDeep
            | Rule::FlowFromElsewhere
            | Rule::BindIdClash
            | Rule::IdOutOfRange
            | Rule::TidZero
            | Rule::ImpreciseTime => Kind::ShownWrongly,
            _ => Kind::Lost,
        }
    }

    /// Whether it tells of other events that the recording lacks, or has too many of, and of none that viewers do not take by itself: an end whose
    /// begin was not recorded is as good as any. A merge leaves those as they are; everything else it mends, moves or leaves out.
    pub fn is_of_recording(self) -> bool {
        matches!(
            self,
            Rule::EndWithoutBegin
                | Rule::MisplacedEnd
                | Rule::TooDeep
                | Rule::FlowTwice
                | Rule::FlowWithoutStart
                | Rule::FlowFromElsewhere
                | Rule::FlowWithoutSpan
                | Rule::FlowWithoutNextSpan
        )
    }

    /// Whether chrome://tracing loads nothing of the file.
    pub(super) fn is_refused_by_chrome(self) -> bool {
        self == Rule::CutOff || self.kind() == Kind::RefusedByChrome
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Rule::NotJson => (
                "not_json",
                "text that viewers cannot read: they load nothing of the file, and what comes after was not checked; a byte order mark (BOM) at its begin is such text, but for chrome://tracing",
            ),
            Rule::LooseJson => (
                "loose_json",
                "text that JSON does not allow, such as NaN in args or raw control characters in names: chrome://tracing loads nothing of the file, Perfetto shows the events, without the args from a NaN on",
            ),
            Rule::CutOff => (
                "cut_off",
                "the end is missing: viewers load nothing, but for an array without an object around it, of which Perfetto shows the whole events",
            ),
            Rule::NotATrace => (
                "not_a_trace",
                "neither an array of events nor an object with traceEvents: viewers show nothing, often without saying so",
            ),
            Rule::BadNumber => (
                "bad_number",
                "a number that no double holds, such as 1e999, as a member of an event: Perfetto loads nothing of the file, but for an array without an object around it, of which it shows what stands before; what comes after in one was not checked",
            ),
            Rule::BadTime => (
                "bad_time",
                "a ts, dur, tts or tdur that is no number: Perfetto loads nothing of the file, but for an array without an object around it, of which it shows what stands before; what comes after in one was not checked",
            ),
            Rule::PidTwice => (
                "pid_twice",
                "a pid that stands in the same event as a text and again as a number behind it: Perfetto breaks down and loads nothing of the file",
            ),
            Rule::HalfCharacter => (
                "half_character",
                "a text with half a character as an escape, such as \\ud83e, and an escaped quote: Perfetto loads nothing of the file, and in a name of a process or thread or in a counter it never ends loading it",
            ),
            Rule::LastBackslash => (
                "last_backslash",
                "a text that ends with a backslash, such as C:\\\\: Perfetto takes the quote behind it for one of the text and loads nothing of the file, but for an array without an object around it, of which it shows what stands before; what comes after in one was not checked",
            ),
            Rule::Comma => (
                "comma",
                "a comma too many or too few: chrome://tracing loads nothing of the file, Perfetto does not mind",
            ),
            Rule::GzipMembers => (
                "gzip_members",
                "compressed in several pieces (gzip members): chrome://tracing loads nothing of the file, Perfetto does not mind",
            ),
            Rule::AfterEnd => (
                "after_end",
                "text after the end of the trace: chrome://tracing loads nothing of the file, and if it is long neither does Perfetto",
            ),
            Rule::NoPhase => ("no_phase", "events without a phase (ph) are dropped"),
            Rule::UnknownPhase => (
                "unknown_phase",
                "events of a phase (ph) that Perfetto does not show",
            ),
            Rule::NoTs => ("no_ts", "events without a ts are dropped"),
            Rule::NegativeTs => ("negative_ts", "events with a negative ts are dropped"),
            Rule::NoDur => ("no_dur", "complete spans (X) without a dur are dropped"),
            Rule::NegativeDur => (
                "negative_dur",
                "spans with a negative dur cannot be drawn as they are",
            ),
            Rule::Overlap => (
                "overlap",
                "spans that overlap another of their thread without one holding the other are dropped",
            ),
            Rule::EndWithoutBegin => (
                "end_without_begin",
                "ends of spans (E, e) that no begin (B, b) belongs to are dropped: one of their thread, or for e of their category and id, and of the same name if they have one",
            ),
            Rule::MisplacedEnd => (
                "misplaced_end",
                "spans (B, E, b, e) that begin inside another span and end after it are cut short",
            ),
            Rule::TooDeep => (
                "too_deep",
                "spans inside 512 others are drawn over the outermost",
            ),
            Rule::InstantWithoutThread => (
                "instant_without_thread",
                "instants (i) of a thread without a tid, or of a process without a pid, are dropped",
            ),
            Rule::CounterValue => (
                "counter_value",
                "values of counters that are no numbers, or counters without any, are dropped",
            ),
            Rule::CounterEndless => (
                "counter_endless",
                "values of a counter that JSON does not know, such as NaN: Perfetto never ends loading the file",
            ),
            Rule::MetadataEndless => (
                "metadata_endless",
                "args of a process_name or thread_name with a value that JSON does not know, such as NaN, or a number that no double holds, such as 1e999: Perfetto never ends loading the file, or breaks down",
            ),
            Rule::BadName => (
                "bad_name",
                "names of processes or threads that are no text, or an empty one, are dropped",
            ),
            Rule::BadId2 => (
                "bad_id2",
                "events with a number in their id2 that no double holds, such as 1e999, are dropped",
            ),
            Rule::AsyncWithoutId => (
                "async_without_id",
                "async events (b, n, e) without an id or a pid are dropped",
            ),
            Rule::FlowId => (
                "flow_id",
                "ends of arrows (s, t, f) whose id is neither an integer nor a hexadecimal text are dropped",
            ),
            Rule::FlowTwice => (
                "flow_twice",
                "arrows that start a second time with the same id, category and name: the second start is dropped, and other arrows lead from the first",
            ),
            Rule::FlowWithoutStart => (
                "flow_without_start",
                "arrows that go on or end without a start before, with the same id, category and name, are not shown",
            ),
            Rule::FlowFromElsewhere => (
                "flow_from_elsewhere",
                "arrows that end at the next span of a thread (f without \"bp\":\"e\") without a start before: Perfetto draws them from a span that has nothing to do with them",
            ),
            Rule::FlowWithoutSpan => (
                "flow_without_span",
                "ends of arrows on a thread that has had no span yet are dropped",
            ),
            Rule::FlowWithoutNextSpan => (
                "flow_without_next_span",
                "arrows that end at the next span of a thread (f without \"bp\":\"e\") where no span follows are not shown",
            ),
            Rule::FlowWithoutDirection => (
                "flow_without_direction",
                "spans with a bind_id but neither flow_in nor flow_out get no arrow",
            ),
            Rule::BindId => (
                "bind_id",
                "spans whose bind_id is neither an integer nor a hexadecimal text get no arrow",
            ),
            Rule::BindIdClash => (
                "bind_id_clash",
                "spans with a small bind_id beside arrows (s, t, f), which Perfetto numbers from 0: it takes them for the same and draws arrows between spans that have nothing to do with each other",
            ),
            Rule::IdOutOfRange => (
                "id_out_of_range",
                "a pid or tid that is negative or does not fit 32 bits becomes 0: such processes are shown as process 0 and such threads as the main thread, and their spans clash with its own",
            ),
            Rule::TidZero => (
                "tid_zero",
                "thread 0 is shown as its process's main thread, which has events of its own",
            ),
            Rule::ImpreciseTime => (
                "imprecise_time",
                "times that a double cannot hold to the nanosecond, such as microseconds since 1970 with decimals: events move by up to 250 ns, and children stick out of their parents",
            ),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
