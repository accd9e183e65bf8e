//! What is too much for memory: sorting, vectors and files that are mapped.
//!
//! In: records of a fixed size, in any order ([`sorter`]) or as they come ([`spill_vec`]), and files that others may cut short ([`content`]). Out: the
//! records in their order, as a slice, and bytes that stay readable. The crate also has maps whose keys are hashes ([`hashed_map`]).
//!
//! Temporary files have no name, so they vanish with the process however it ends. They lie in the first of some folders that takes them
//! ([`in_first`]); what goes wrong there is a [`TemporaryError`], which names the folder.
//!
//! ```
//! use trace_store::sorter::{Record, Sorter};
//!
//! #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
//! struct Time(u64);
//!
//! impl Record for Time {}
//!
//! let folder = std::env::temp_dir();
//! let mut sorter = Sorter::new(&folder);
//! for ns in [30, 10, 20] {
//!     sorter.push(Time(ns))?;
//! }
//! let times = sorter.finish()?;
//! assert_eq!(times.first().map(|time| time.0), Some(10));
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod content;
pub mod hashed_map;
mod mapped_file;
mod records;
pub mod sorter;
pub mod spill_vec;
mod temporary;

pub use temporary::{TemporaryError, in_first, named_temporary};
