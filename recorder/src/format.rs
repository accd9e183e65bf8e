//! The fragment format, version 1: what recorder and merge must agree on. FORMAT.md is its text.
//!
//! Names of files and metadata records, the header, and block headers with their checksum. Data only, no I/O.

pub mod control;
mod level;
pub mod loss;
mod reach;
pub mod ring;
mod visible;

pub use level::Level;
pub use reach::Reach;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use twox_hash::XxHash3_64;
pub(crate) use visible::try_visible;
pub use visible::{is_invisible, visible, visible_json, visible_lines};

/// The format version this crate writes.
pub const VERSION: u32 = 1;
/// Folder of the live run's fragments inside the run directory.
pub const FRAGMENTS_DIR: &str = "fragments";
/// Folder of earlier runs inside the run directory.
pub const PREVIOUS_DIR: &str = "previous";
/// The run directory where nobody names one; `sa-profile run` makes a folder for each run in it.
pub const DEFAULT_DIRECTORY: &str = "profile_out";
/// File that names the live run, inside the run directory.
pub const RUN_FILE: &str = "run";
/// File that names the run that a main process is about to begin, as a process that was faster has it.
pub const NEXT_RUN_FILE: &str = "run.next";
/// File that tells of the earlier runs that were removed, inside the run directory.
pub const REMOVED_FILE: &str = "removed";
/// The merged trace inside the run directory.
pub const TRACE_FILE: &str = "trace.json";
/// First part of every fragment's file name.
pub const FRAGMENT_PREFIX: &str = "trace.";
/// Last part of every fragment's file name.
pub const FRAGMENT_SUFFIX: &str = ".jsonl";
/// Last part of every ring's file name.
pub const RING_SUFFIX: &str = ".ring";

/// Name of the metadata record that opens every segment.
pub const FRAGMENT_RECORD: &str = "sa_fragment";
/// Name of the metadata record that ties the monotonic clock to wall time.
pub const ANCHOR_RECORD: &str = "sa_anchor";
/// Name of the metadata record before each block.
pub const BLOCK_RECORD: &str = "sa_block";
/// Name of the metadata record that a clean exit writes last.
pub const END_RECORD: &str = "sa_end";
/// Name of the metadata record that names the positions that went with removed segments.
pub const REMOVED_RECORD: &str = "sa_removed";
/// Name of the metadata record that describes a track.
pub const TRACK_RECORD: &str = "sa_track";
/// Name of the instant in which the preload library says what it sees of its process.
pub const REACH_RECORD: &str = "sa_reach";
/// Name of the instant that tells of lost events.
pub const LOSS_RECORD: &str = "sa_loss";
/// Category of the records about the recording itself.
pub const OWN_CATEGORY: &str = "sa_profile";

/// How every block header line starts.
pub const BLOCK_START: &[u8] = br#"{"ph":"M","name":"sa_block","pid":"#;
/// How every segment's first line starts, up to the pid.
pub const FRAGMENT_START: &[u8] = br#"{"ph":"M","pid":"#;

/// The first virtual lane; kernel tids are smaller (`PID_MAX_LIMIT`).
pub const LANE_BASE: u32 = 1 << 22;
/// The first track; lanes are smaller.
pub const TRACK_BASE: u32 = 1 << 28;
/// A line longer than this is damage.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The args of the `sa_fragment` record: which process and recorder wrote the fragment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentHeader {
    /// Format version.
    pub version: u32,
    /// 16 hex digits that tell recorders apart.
    pub nonce: String,
    /// Segment number, from 0.
    pub segment: u32,
    /// Run id.
    pub run: String,
    /// Whether the process is the run's main process.
    pub main: bool,
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Inode of the pid namespace.
    pub pid_ns: u64,
    /// Inode of the time namespace, 0 where the kernel has none.
    pub time_ns: u64,
    /// Offset of the time namespace's monotonic clock in ns.
    pub monotonic_offset_ns: i64,
    /// Process id inside its namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// File name of the executable.
    pub exe: String,
    /// File name of the script that an interpreter runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Name of the process that forked this one, or of its nearest ancestor that had one; empty if none had. Absent unless a recording process forked this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// Whether a ring file lies beside the fragment.
    pub ring: RingKind,
    /// The writer's page size in bytes.
    pub page_bytes: u32,
    /// The levels that were on when the fragment began, before any control: absent in fragments of recorders that could not be switched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Level>>,
}

impl FragmentHeader {
    /// Returns the file name of the script, or else of the executable.
    pub fn program(&self) -> &str {
        self.script.as_deref().unwrap_or(&self.exe)
    }

    /// Returns what the process is called until it names itself: `worker-0 fork 4711` if it was forked, and else its program.
    pub fn default_name(&self) -> Cow<'_, str> {
        match self.forked_from.as_deref() {
            None => self.program().into(),
            Some("") => format!("{} fork {}", self.program(), self.pid).into(),
            Some(parent) => format!("{parent} fork {}", self.pid).into(),
        }
    }

    /// Returns true if the process was forked from one that had a name.
    pub fn is_named_after_parent(&self) -> bool {
        let parent = self.forked_from.as_ref();
        parent.is_some_and(|parent| !parent.is_empty())
    }

    /// Takes the parent's name from another fragment of the same process, whose recorder may know it.
    pub fn complete_with(&mut self, other: &FragmentHeader) {
        if !self.is_named_after_parent() && other.is_named_after_parent() {
            self.forked_from.clone_from(&other.forked_from);
        }
    }
}

/// Where a recorder keeps its rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingKind {
    /// In a file beside the fragment: survives a kill.
    File,
    /// In anonymous memory: what was not flushed dies with the process.
    Heap,
}

/// The args of an `sa_removed` record: up to which position each stream was in segments that are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedStreams {
    /// The first segment that is not removed; the loss record says the same.
    pub first: u32,
    /// Events that went with the others; the loss record says the same.
    pub events: u64,
    /// Slot, generation, and the position after the last one removed.
    pub streams: Vec<(u32, u32, u64)>,
}

/// The args of an `sa_anchor` record: one reading of the monotonic and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// `CLOCK_MONOTONIC` in ns.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` in ns since the epoch.
    pub realtime_ns: u64,
    /// Half the time that the reading took, in ns.
    pub uncertainty_ns: u64,
}

/// The args of an `sa_anchor` record in a block: the reading, and how far back the lines reach that are recorded later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockAnchor {
    /// The reading.
    #[serde(flatten)]
    pub anchor: Anchor,
    /// The least start, in ns of `CLOCK_MONOTONIC`, of all spans that were open when the anchor was read, or the time of the last anchor if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ns: Option<u64>,
    /// The longest time so far between the begin of something that was told only afterwards and its telling, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
}

/// The contents of `<dir>/run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// Run id.
    pub run: String,
    /// Pid of the main process inside its namespace.
    pub main_pid: u32,
    /// Start time of the main process in clock ticks since boot.
    pub start_time: u64,
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Inode of the main process's pid namespace.
    pub pid_ns: u64,
}

/// An earlier run whose fragments were removed to make room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRun {
    /// Run id.
    pub run: String,
    /// Fragments and segments that were removed.
    pub fragments: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Events in them.
    pub events: u64,
    /// Whether the number of events was estimated from a part of them.
    #[serde(default)]
    pub estimated: bool,
    /// When, in ns of `CLOCK_REALTIME`.
    pub realtime_ns: u64,
}

/// The contents of `<dir>/removed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRuns {
    /// The runs that were removed last, in that order.
    #[serde(default)]
    pub runs: Vec<RemovedRun>,
    /// How many runs were removed before these, and are not named any more.
    #[serde(default)]
    pub older_runs: u64,
    /// The events of those.
    #[serde(default)]
    pub older_events: u64,
}

/// A metadata record as a line holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata<A> {
    /// Always `M`.
    pub ph: String,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name of the record.
    pub name: String,
    /// Its contents.
    pub args: A,
}

impl<A> Metadata<A> {
    /// Makes a record of process `pid`, on its main thread.
    pub fn new(pid: u32, name: &str, args: A) -> Self {
        Metadata {
            ph: "M".to_owned(),
            pid,
            tid: pid,
            name: name.to_owned(),
            args,
        }
    }
}

/// The args of the `sa_track` record: what the record's `tid` stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackRecord {
    /// The group of tracks it belongs to, shown as a process.
    pub process: String,
    /// A short label of the group.
    pub label: String,
    /// Where the group stands among its like.
    pub sort_index: u32,
    /// Name of the track itself.
    pub thread: String,
}

/// A block header: where in a slot's stream the following bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Slot whose stream the block is from.
    pub slot: u32,
    /// Generation of the stream.
    pub generation: u32,
    /// Position of the first byte.
    pub from: u64,
    /// Bytes in the block.
    pub len: u64,
    /// Checksum as [`block_sum`] computes it.
    pub sum: u64,
}

/// Computes the checksum of a block's bytes; the position is part of it, so a header with a wrong number never matches.
pub fn block_sum(slot: u32, generation: u32, from: u64, bytes: &[u8]) -> u64 {
    let seed = from ^ (u64::from(slot) << 48) ^ (u64::from(generation) << 32);
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// No block header line is longer.
pub const MAX_HEADER_BYTES: usize = 192;

impl BlockHeader {
    /// Parses a block header line (without its newline); `None` if it is not exactly one.
    pub fn parse(line: &[u8]) -> Option<BlockHeader> {
        let mut rest = Cursor(line.strip_prefix(BLOCK_START)?);
        let pid = rest.number()?;
        rest.literal(br#","tid":"#)?;
        if rest.number()? != pid {
            return None;
        }
        rest.literal(br#","args":{"slot":"#)?;
        let slot = u32::try_from(rest.number()?).ok()?;
        rest.literal(br#","gen":"#)?;
        let generation = u32::try_from(rest.number()?).ok()?;
        rest.literal(br#","from":"#)?;
        let from = rest.number()?;
        rest.literal(br#","len":"#)?;
        let len = rest.number()?;
        rest.literal(br#","sum":""#)?;
        let sum = rest.hex16()?;
        rest.literal(br#""}}"#)?;
        rest.0.is_empty().then_some(BlockHeader {
            slot,
            generation,
            from,
            len,
            sum,
        })
    }

    /// Appends the header line of a block of process `pid`, with its newline.
    pub fn write(&self, pid: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(BLOCK_START);
        let mut digits = itoa::Buffer::new();
        let mut put = |key: &[u8], value: u64| {
            out.extend_from_slice(key);
            out.extend_from_slice(digits.format(value).as_bytes());
        };
        put(b"", u64::from(pid));
        put(br#","tid":"#, u64::from(pid));
        put(br#","args":{"slot":"#, u64::from(self.slot));
        put(br#","gen":"#, u64::from(self.generation));
        put(br#","from":"#, self.from);
        put(br#","len":"#, self.len);
        out.extend_from_slice(br#","sum":""#);
        out.extend(
            (0..16)
                .rev()
                .map(|nibble| hex_digit(self.sum >> (4 * nibble))),
        );
        out.extend_from_slice(b"\"}}\n");
    }
}

fn hex_digit(value: u64) -> u8 {
    b"0123456789abcdef"[(value & 15) as usize]
}

/// Reads literals and numbers off the front of a byte string.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let text = std::str::from_utf8(&self.0[..digits]).ok()?;
        self.0 = &self.0[digits..];
        text.parse().ok()
    }

    fn hex16(&mut self) -> Option<u64> {
        let (text, rest) = self.0.split_at_checked(16)?;
        if !text
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return None;
        }
        self.0 = rest;
        u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
    }
}

/// Tells whether a file name is a fragment's: `trace.*.jsonl`.
pub fn is_fragment_name(name: &str) -> bool {
    name.starts_with(FRAGMENT_PREFIX)
        && name.ends_with(FRAGMENT_SUFFIX)
        && name.len() > FRAGMENT_PREFIX.len() + FRAGMENT_SUFFIX.len() - 1
}

/// The file name of a segment; segment 0 has none in its name.
pub fn segment_name(stem: &str, segment: u32) -> String {
    match segment {
        0 => format!("{stem}{FRAGMENT_SUFFIX}"),
        segment => format!("{stem}.s{segment}{FRAGMENT_SUFFIX}"),
    }
}

/// The stem, which a fragment's ring has too, and the segment that a fragment's file name says; `None` for any other name.
pub fn stem_and_segment(name: &str) -> Option<(&str, u32)> {
    let whole = name
        .strip_suffix(FRAGMENT_SUFFIX)
        .filter(|_| is_fragment_name(name))?;
    let split = whole.rsplit_once(".s").and_then(|(stem, digits)| {
        let number: u32 = digits.parse().ok()?;
        (number > 0 && number.to_string() == digits && stem.len() > FRAGMENT_PREFIX.len())
            .then_some((stem, number))
    });
    Some(split.unwrap_or((whole, 0)))
}

/// Returns the name of the folder that `sa-profile run` makes for a run: the time that the run id begins with, or else the whole id.
pub fn run_folder_name(run: &str) -> &str {
    let time = run.get(..RUN_TIME_BYTES);
    time.filter(|time| is_run_time(time)).unwrap_or(run)
}

/// Returns true if `sa-profile run` gives this name to the folder of a run with this id, or names folders by such a time. A name that is taken gets
/// a number: `20260102-030405-2`.
pub fn is_run_folder_name(name: &str, run: &str) -> bool {
    let is_number = |rest: &str| {
        let digits = rest.strip_prefix('-').unwrap_or_default();
        rest.is_empty() || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let after = |start: &str| name.strip_prefix(start).is_some_and(is_number);
    let time = name.get(..RUN_TIME_BYTES).filter(|time| is_run_time(time));
    time.is_some_and(after) || !run.is_empty() && after(run_folder_name(run))
}

/// Length of the time that a run id begins with.
const RUN_TIME_BYTES: usize = "YYYYMMDD-HHMMSS".len();

fn is_run_time(text: &str) -> bool {
    text.len() == RUN_TIME_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Tells whether a file name is a ring's: `trace.*.ring`.
pub fn is_ring_name(name: &str) -> bool {
    name.starts_with(FRAGMENT_PREFIX) && name.ends_with(RING_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_runs_are_known_by_their_names() {
        assert_eq!(
            run_folder_name("20260102-030405-1a2b3c4d"),
            "20260102-030405"
        );
        assert_eq!(run_folder_name("some-job-of-mine-7"), "some-job-of-mine-7");
        for (name, run, expected) in [
            ("20260102-030405", "", true),
            ("20260102-030405-12", "another", true),
            ("20260102-030405-b", "", false),
            ("20260102-0304", "", false),
            ("job-7", "job-7", true),
            ("job-7-2", "job-7", true),
            ("job-7-aside", "job-7", false),
            ("aside", "job-7", false),
            ("", "", false),
        ] {
            assert_eq!(is_run_folder_name(name, run), expected, "{name:?} {run:?}");
        }
    }

    #[test]
    fn block_header_round_trips() {
        let longest = BlockHeader {
            slot: u32::MAX,
            generation: u32::MAX,
            from: u64::MAX,
            len: u64::MAX,
            sum: u64::MAX,
        };
        let usual = BlockHeader {
            slot: 3,
            generation: 1,
            from: 1 << 40,
            len: 32768,
            sum: 0x0123_4567_89ab_cdef,
        };
        for header in [usual, longest] {
            let mut line = Vec::new();
            header.write(u32::MAX, &mut line);
            assert!(line.len() <= MAX_HEADER_BYTES);
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(BlockHeader::parse(&line), Some(header));
        }
    }

    #[test]
    fn block_header_cut_anywhere_is_none() {
        let mut line = Vec::new();
        BlockHeader {
            slot: 0,
            generation: 0,
            from: 0,
            len: 1,
            sum: 0,
        }
        .write(1, &mut line);
        line.pop();
        for end in 0..line.len() {
            assert_eq!(BlockHeader::parse(&line[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn block_sum_depends_on_the_position() {
        assert_ne!(block_sum(0, 0, 0, b"x\n"), block_sum(0, 0, 1, b"x\n"));
        assert_ne!(block_sum(0, 0, 0, b"x\n"), block_sum(1, 0, 0, b"x\n"));
    }

    #[test]
    fn names_follow_the_pattern() {
        assert!(is_fragment_name("trace.12.jsonl") && is_fragment_name("trace.12.s1.jsonl"));
        assert!(
            !is_fragment_name("trace.json")
                && !is_fragment_name("trace.jsonl")
                && !is_fragment_name("trace.12.ring")
        );
        assert!(is_ring_name("trace.12.ring"));
    }

    #[test]
    fn segments_have_the_stem_of_their_fragment() {
        for (stem, segment, name) in [
            ("trace.12", 0, "trace.12.jsonl"),
            ("trace.12", 7, "trace.12.s7.jsonl"),
            ("trace.12.9f86", 10, "trace.12.9f86.s10.jsonl"),
        ] {
            assert_eq!(segment_name(stem, segment), name);
            assert_eq!(stem_and_segment(name), Some((stem, segment)));
        }
        for odd in [
            "trace.7.s0",
            "trace.7.s01",
            "trace.7.sx",
            "trace.s3",
            "trace.7.s99999999999",
        ] {
            let name = format!("{odd}.jsonl");
            assert_eq!(stem_and_segment(&name), Some((odd, 0)));
        }
        assert_eq!(stem_and_segment("trace.12.ring"), None);
    }
}
