//! Follows a run while it is being written: reads each event once, soon after its recorder wrote it.
//!
//! A [`Follower`] opens the fragments of the newest run and reads the whole lines and whole blocks that were added since the last poll. Incomplete
//! ones are read later. A file is only open while it is read, so that a segment that its recorder removes takes no disk space. The follower locks,
//! settles and changes nothing, and the recorder does not notice it. Rings are not read, so what a killed process left in its ring is missing until
//! the run is merged.
//!
//! Times use the first readings of the clocks; several hosts are related by their wall clocks.
//!
//! A block that does not match its checksum is counted. Its events are read when its slot has continued or its recorder has ended, unless another
//! block contains the same positions. Positions of a recorder's streams that no whole block contains and no record explains are counted, too.
//!
//! ```no_run
//! use trace_reader::follow::Follower;
//!
//! let mut follower = Follower::new("profile_out".as_ref());
//! loop {
//!     follower.poll(64 << 20, |run, event| {
//!         let process = &run.processes()[run.threads()[event.thread].process];
//!         println!("{} {} ns: {}", process.label(), event.ts_ns, event.name());
//!     });
//!     std::thread::sleep(std::time::Duration::from_secs(1));
//! }
//! ```

mod boot_clocks;
mod broken_blocks;
mod followed_fragment;
mod followed_run;
mod follower;
mod streams;
mod tail;

pub use followed_fragment::Skipped;
pub use followed_run::{FollowedEnd, FollowedProcess, FollowedRun};
pub use follower::{Follower, Poll};
