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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_that_are_all_0_are_none() {
        let of = |texts: &[&str]| {
            let mut times = CpuTimes::default();
            texts.iter().for_each(|text| times.add(text.as_bytes()));
            times
        };
        let [none, zero] = [r#"{"ph":"X","ts":1}"#, r#"{"tts":0,"tdur":0.000,"ts":1}"#];
        let other = r#"{"args":{"tdur":7},"tts":0}"#;
        let null = r#"{"tts":null,"tdur":null}"#;
        assert_eq!(of(&[none, null]), CpuTimes::Absent);
        assert_eq!(of(&[zero, null]), CpuTimes::Zero);
        assert_eq!(of(&[none, zero, other]), CpuTimes::Zero);
        assert_eq!(
            of(&[zero, r#"{"tts":5,"tdur":0}"#, zero]),
            CpuTimes::Measured
        );
        assert_eq!(of(&[r#"{"tts":0,"tdur":1.5}"#]), CpuTimes::Measured);
        assert_eq!(without_cpu_times(none.as_bytes()), None);
        let text = without_cpu_times(br#"{"tts":0, "ph" : "X","tdur":0,"args":{"tts":1}}"#);
        assert_eq!(text.unwrap(), br#"{"ph":"X","args":{"tts":1}}"#);
    }
}
