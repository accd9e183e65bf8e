//! What is too much for memory: sorting, vectors and files that are mapped.
//!
//! In: records of a fixed size, in any order ([`sorter`]) or as they come ([`spill_vec`]), and files that others may cut short ([`content`]). Out: the
//! records in their order, a batch at a time, and bytes that stay readable. Beside them stand maps whose keys are hashes ([`hashed_map`]).
//!
//! Temporary files have no name, so they vanish with the process however it ends. They lie in the first of some folders that takes them
//! ([`in_first`]); what goes wrong there is a [`TemporaryError`], which names the folder.
//!
//! ```
//! use trace_store::sorter::{Record, Sorter, long_at};
//!
//! #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
//! struct Time(u64);
//!
//! impl Record for Time {
//!     const BYTES: usize = 8;
//!
//!     fn store(&self, out: &mut Vec<u8>) {
//!         out.extend_from_slice(&self.0.to_le_bytes());
//!     }
//!
//!     fn load(bytes: &[u8]) -> Time {
//!         Time(long_at(bytes, 0))
//!     }
//! }
//!
//! let folder = std::env::temp_dir();
//! let mut sorter = Sorter::new(&folder);
//! for ns in [30, 10, 20] {
//!     sorter.push(Time(ns))?;
//! }
//! let mut times = Vec::new();
//! sorter.finish()?.each(|time| {
//!     times.push(time.0);
//!     Ok(())
//! })?;
//! assert_eq!(times, [10, 20, 30]);
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod content;
pub mod hashed_map;
mod mapped_file;
pub mod sorter;
pub mod spill_vec;
mod temporary;

pub use temporary::{TemporaryError, in_first, named_temporary};
