//! The fragment format, version 1: the files that a recording process leaves on disk. FORMAT.md
//! specifies the format. This crate reads and writes its parts.
//!
//! Everything here is data: no I/O, no clock, no threads. The recorder writes with these types and
//! every reader parses with them, so each record has one definition.
//!
//! - [`file_name`]: names of fragments, segments, rings and folders, and the small files of a run.
//! - [`header`]: the first record of each segment.
//! - [`block`]: headers and checksums of the blocks in which lines reach a fragment.
//! - [`record`]: the recorder's own metadata records (anchors, tracks, removed segments, the end).
//! - [`loss`], [`control`], [`visibility`]: the recorder's own instants, and the control file.
//! - [`phase`]: the kinds of events.
//! - [`ring`]: the layout of the ring file.
//! - [`mod@visible`]: spells out invisible characters.

pub mod block;
pub mod control;
pub mod file_name;
pub mod header;
pub mod loss;
pub mod phase;
pub mod record;
pub mod ring;
pub mod visibility;
pub mod visible;

pub use block::{BLOCK_START, BlockHeader, MAX_HEADER_BYTES, block_sum};
pub use control::Level;
pub use file_name::{
    DEFAULT_DIRECTORY, FRAGMENT_PREFIX, FRAGMENT_SUFFIX, FRAGMENTS_DIR, NEXT_RUN_FILE,
    PREVIOUS_DIR, REMOVED_FILE, RING_SUFFIX, RUN_FILE, RemovedRun, RemovedRuns, RunFile,
    TRACE_FILE, is_fragment_name, is_ring_name, is_run_folder_name, ring_name, run_folder_name,
    segment_name, stem_and_segment,
};
pub use header::{FRAGMENT_START, FragmentHeader, RingKind, VERSION};
pub use phase::Phase;
pub use record::{
    Anchor, ENGINE_SETTINGS, End, Exit, InstantPlace, Name, OWN_CATEGORY, PROCESS_NAME, Record,
    RemovedStreams, THREAD_NAME, TrackRecord, parse_name, write_instant, write_metadata,
};
pub use visibility::Visibility;
pub use visible::{is_invisible, try_visible, visible, visible_json, visible_lines};

/// First virtual lane. Kernel tids are smaller (`PID_MAX_LIMIT`).
pub const LANE_BASE: u32 = 1 << 22;
/// First track. Lanes are smaller.
pub const TRACK_BASE: u32 = 1 << 28;
/// Maximum length of a line in bytes. A longer line is damage.
pub const MAX_LINE_BYTES: usize = 16 << 20;
