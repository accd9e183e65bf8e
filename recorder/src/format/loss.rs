//! Why events were lost, as records name it (FORMAT.md §2.3) and rings number it (§3).

/// Why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The disk had no room.
    DiskFull,
    /// The file may not grow further.
    FileSizeLimit,
    /// The file could not be written.
    WriteError,
    /// The file took nothing for so long that the ring was full.
    Busy,
    /// Somebody removed the fragment.
    FragmentRemoved,
    /// The process's share of the disk was full.
    DiskBound,
    /// The event was recorded inside another one of its thread.
    Signal,
    /// No slot was left for a thread.
    Threads,
    /// Not lost: a duration had to be clamped.
    Clamped,
    /// An event was too large.
    TooLarge,
    /// Too many spans were open.
    TooManyOpen,
    /// Children of a fork could not open a fragment of their own: what is counted are processes.
    ChildrenRefused,
    /// There was no memory for the event, or for something of it.
    OutOfMemory,
    /// Spans were open when the process ended, and its ring had no room for them.
    OpenSpans,
    /// Not lost: a text or a list exceeded its limit and was cut.
    Cut,
    /// Not lost: the program's implementation of `Value` wrote invalid JSON, which was replaced with `null`.
    BadValue,
    /// Not lost: a series of a counter had a value that is not a finite number, and was left out.
    BadSeries,
}

impl Cause {
    /// Every cause, in the order of their numbers.
    pub const ALL: [Cause; 17] = [
        Cause::DiskFull,
        Cause::FileSizeLimit,
        Cause::WriteError,
        Cause::Busy,
        Cause::FragmentRemoved,
        Cause::DiskBound,
        Cause::Signal,
        Cause::Threads,
        Cause::Clamped,
        Cause::TooLarge,
        Cause::TooManyOpen,
        Cause::ChildrenRefused,
        Cause::OutOfMemory,
        Cause::OpenSpans,
        Cause::Cut,
        Cause::BadValue,
        Cause::BadSeries,
    ];

    /// The name that records have.
    pub fn name(self) -> &'static str {
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
            Cause::ChildrenRefused => "children_refused",
            Cause::OutOfMemory => "out_of_memory",
            Cause::OpenSpans => "open_spans",
            Cause::Cut => "cut",
            Cause::BadValue => "bad_value",
            Cause::BadSeries => "bad_series",
        }
    }

    /// The number that rings have, from 1 on.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The cause of a number.
    pub fn of_number(number: u32) -> Option<Cause> {
        Cause::ALL
            .into_iter()
            .find(|cause| cause.number() == number)
    }

    /// The cause of a name.
    pub fn of_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// Whether what is counted are events that are missing.
    pub fn loses_events(self) -> bool {
        !matches!(self, Cause::ChildrenRefused) && !self.changes_events()
    }

    /// Returns whether the cause counts events that were recorded with a change, such as a shortened text.
    pub fn changes_events(self) -> bool {
        matches!(
            self,
            Cause::Clamped | Cause::Cut | Cause::BadValue | Cause::BadSeries
        )
    }
}

/// What a loss record says beside its pid and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRecord {
    /// The process.
    pub pid: u32,
    /// The thread whose events they are; 0 for several or none.
    pub tid: u32,
    /// Why.
    pub cause: Cause,
    /// How many events; of [`Cause::ChildrenRefused`] how many processes.
    pub count: u64,
    /// Time of the first one, in ns.
    pub first_ns: u64,
    /// Time of the last one, in ns.
    pub last_ns: u64,
    /// Slot, generation, first position and the one after the last, where they had positions.
    pub place: Option<(u32, u32, u64, u64)>,
    /// What the system answered, by its number; 0 for nothing.
    pub error: u32,
}

impl LossRecord {
    /// The record as a line.
    pub fn line(&self) -> String {
        let (us, ns) = (self.first_ns / 1000, self.first_ns % 1000);
        let (pid, name, category) = (self.pid, super::LOSS_RECORD, super::OWN_CATEGORY);
        let (tid, scope) = match self.tid {
            0 => (pid, 'p'),
            tid => (tid, 't'),
        };
        let (cause, args) = (self.cause.name(), self.args());
        format!(
            r#"{{"ph":"i","pid":{pid},"tid":{tid},"ts":{us}.{ns:03},"s":"{scope}","name":"{name}","cat":"{category}","args":{{"cause":"{cause}",{args}}}}}"#
        ) + "\n"
    }

    fn args(&self) -> String {
        let span_us = self.last_ns.saturating_sub(self.first_ns) / 1000;
        let mut args = match self.cause {
            Cause::ChildrenRefused => format!(r#""events":0,"processes":{}"#, self.count),
            _ => format!(r#""events":{}"#, self.count),
        };
        args += &format!(r#","span_us":{span_us}"#);
        if self.error != 0 {
            args += &format!(r#","errno":{}"#, self.error);
        }
        if let Some((slot, generation, from, to)) = self.place {
            args += &format!(r#","slot":{slot},"gen":{generation},"from":{from},"to":{to}"#);
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_found_again() {
        for (cause, number) in Cause::ALL.into_iter().zip(1..) {
            assert_eq!(cause.number(), number);
            assert_eq!(Cause::of_number(number), Some(cause));
            assert_eq!(Cause::of_name(cause.name()), Some(cause));
        }
        assert_eq!((Cause::of_number(0), Cause::of_number(18)), (None, None));
    }

    #[test]
    fn a_loss_of_a_thread_stands_on_its_row() {
        let mut record = LossRecord {
            pid: 7,
            tid: 9,
            cause: Cause::DiskFull,
            count: 3,
            first_ns: 5250,
            last_ns: 9001,
            place: Some((2, 0, 10, 20)),
            error: 0,
        };
        assert_eq!(
            record.line(),
            "{\"ph\":\"i\",\"pid\":7,\"tid\":9,\"ts\":5.250,\"s\":\"t\",\"name\":\"sa_loss\",\"cat\":\"sa_profile\",\"args\":{\"cause\":\"disk_full\",\"events\":3,\"span_us\":3,\"slot\":2,\"gen\":0,\"from\":10,\"to\":20}}\n"
        );
        (record.tid, record.cause, record.place, record.error) =
            (0, Cause::ChildrenRefused, None, 13);
        let line = record.line();
        assert!(
            line.contains(r#""tid":7,"ts":5.250,"s":"p""#)
                && line.contains(r#""events":0,"processes":3,"span_us":3,"errno":13}"#),
            "{line}"
        );
    }
}
