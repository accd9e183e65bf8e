//! Support for the end-to-end tests: starts and drives the host program, and reads its spans back.

pub mod cgroup;
pub mod ground;
pub mod host;
pub mod live;
pub mod merged;
pub mod recording;
pub mod stage;
pub mod switch;

pub use cgroup::MemoryGroup;
pub use ground::{
    Mount, disk_space, full, is_root, library, make_folder, mode, public_copy, ring_files, scratch,
    segment_bytes, segments, set_mode, skip, status_kib, works,
};
pub use host::{Host, Outcome, assert_undisturbed, undisturbed};
pub use live::Live;
pub use merged::{Merged, track};
pub use recording::{HostRecording, assert_accounted_or_off, previous_runs};
