//! A run that is being written, read as it grows: each event once, soon after its recorder wrote it.
//!
//! A [`Follower`] opens the fragments of the newest run for reading, and reads of each only the whole lines and whole blocks that it has not read yet.
//! What is not whole yet waits. A file is open only while some of it is read, so that a segment that its recorder removes takes no room. Nothing is locked, settled or changed, and rings are not looked at. So a recorder does not notice that it is followed, and what a
//! killed process left in its ring is not seen. A merge sees it once the run is over.
//!
//! Events are placed as the first readings of the clocks say, those of several hosts by what their wall clocks showed. A block that does not match its checksum
//! is counted. The events in it are read once its slot goes on or its recorder has ended, unless another block contains the same positions. Every
//! position of a recorder's streams that is in no whole block and that no record explains is counted, too.
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
