//! A process of a run that is followed.

use sa_format::FragmentHeader;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What has become of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowedEnd {
    /// It lives, as far as that can be seen from here.
    #[default]
    Alive,
    /// It ended recording itself.
    Ended,
    /// It is gone without having said so.
    Died,
    /// It was running when this snapshot of its run was taken, and no more of it will come.
    Running,
}

/// A process, or a group of tracks that one recorded, such as the streams of a device.
#[derive(Clone, Debug, Default)]
pub struct FollowedProcess {
    /// The identity of the process, or of the one that recorded the tracks.
    pub header: FragmentHeader,
    /// What it calls itself; the name of a group of tracks.
    pub name: Option<String>,
    /// Whether it is a group of tracks.
    pub is_tracks: bool,
    /// The process that recorded it, by its number: itself, but for a group of tracks.
    pub recorder: usize,
    /// What has become of it.
    pub end: FollowedEnd,
    /// Events that were read of it, with the names that it told.
    pub events: u64,
    /// Bytes that were read of its fragments.
    pub bytes: u64,
    /// Events that it says it lost, by cause; of `children_refused` processes that could not record.
    pub lost: BTreeMap<String, u64>,
    /// The end of its last event, on the axis.
    pub last_ns: Option<i64>,
    /// What its times may be off against those of the first host; `None` where nothing tells.
    pub clock_uncertainty_ns: Option<u64>,
}

impl FollowedProcess {
    /// What people call it: its name, its script or its program.
    pub fn label(&self) -> Cow<'_, str> {
        let named = self.name.as_deref().map(Cow::Borrowed);
        named.unwrap_or_else(|| self.header.default_name())
    }
}
