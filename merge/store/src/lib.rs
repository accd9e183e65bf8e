//! Data that may exceed memory: sorting, vectors and mapped files.
//!
//! In: records of a fixed size, to be sorted ([`sorter`]) or kept in their order ([`spill_vec`]), and files that other programs may truncate ([`content`]).
//! Out: the records as a slice, and bytes that stay readable. The crate also has maps whose keys are hashes ([`hashed_map`]).
//!
//! Temporary files have no name, so they vanish with the process, however it ends. They are created in the first of several folders that accepts them
//! ([`try_folders`]). A failure is reported as a [`TemporaryError`], which names the folder.
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

pub use temporary::{TemporaryError, named_temporary, try_folders};
