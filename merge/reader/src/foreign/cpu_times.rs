//! The CPU times of another profiler's events. Node.js writes `"tts":0,"tdur":0` in every event because it measures none.

use crate::event::json::{Members, object_of};
use memchr::memmem::Finder;
use std::sync::LazyLock;

static TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""tdur""#));
static START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""tts""#));

/// The CPU times of all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CpuTimes {
    /// No event has one.
    #[default]
    Absent,
    /// All are 0.
    Zero,
    Measured,
}

impl CpuTimes {
    /// Adds the CPU times of an event.
    pub(super) fn add(&mut self, text: &[u8]) {
        if *self == CpuTimes::Measured || !has_any(text) {
            return;
        }
        for (_, value) in Members::of(text).filter(|(key, _)| is_cpu_time(key)) {
            *self = match value {
                b"null" => continue,
                value if value.iter().all(|byte| b"0.\"".contains(byte)) => CpuTimes::Zero,
                _ => return *self = CpuTimes::Measured,
            };
        }
    }
}

fn has_any(text: &[u8]) -> bool {
    TIME.find(text).is_some() || START.find(text).is_some()
}

fn is_cpu_time(key: &[u8]) -> bool {
    matches!(key, b"tts" | b"tdur")
}

/// Returns an event without its CPU times, if it has any.
pub(super) fn without_cpu_times(text: &[u8]) -> Option<Vec<u8>> {
    if !has_any(text) {
        return None;
    }
    let kept = Members::of(text).filter(|(key, _)| !is_cpu_time(key));
    Some(object_of(kept.map(|(key, value)| (key, value.into()))))
}
