//! What the tests of forks, identity, limits and hostile files share: starting the host program, leading it, and finding its spans.

pub mod cgroup;
pub mod found;
pub mod ground;
pub mod host;
pub mod live;
pub mod merged;
pub mod stage;
pub mod switch;

pub use cgroup::MemoryGroup;
pub use found::{Found, assert_accounted_or_off, previous_runs};
pub use ground::{
    Mount, disk_space, full, is_root, library, make_folder, mode, public_copy, ring_files, scratch,
    segment_bytes, segments, set_mode, skip, status_kib, works,
};
pub use host::{Host, Outcome, assert_undisturbed, undisturbed};
pub use live::Live;
pub use merged::{Merged, row};
