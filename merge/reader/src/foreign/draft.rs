//! A trace that was read, before it is known where its times belong.

use super::clock::TimeOrigin;
use super::find::TraceCandidate;
use super::lines::Lines;
use super::members::DocumentMembers;
use sa_format::FragmentHeader;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A trace that was read, before it is known where its times belong.
pub(super) struct TraceDraft<'f> {
    /// The file, without what it holds.
    pub(super) file: TraceCandidate,
    pub(super) name: String,
    /// Its text's first bytes.
    pub(super) front: Vec<u8>,
    pub(super) lines: Lines<'f>,
    pub(super) form: &'static str,
    pub(super) members: DocumentMembers,
    pub(super) origin: TimeOrigin,
    pub(super) joined: BTreeMap<i64, FragmentHeader>,
    pub(super) unplaced: u64,
    pub(super) folder: PathBuf,
    /// Set if another program changed the file while it was read.
    pub(super) has_changed: bool,
}
