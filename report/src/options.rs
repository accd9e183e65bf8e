//! Options of a report.

use clap::ValueEnum;
use serde::Serialize;
use trace_merge::parse_duration;

/// Groups in which names are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NamesBy {
    /// Count each name once for the whole run
    #[default]
    Run,
    /// Count each process separately
    Process,
    /// Count each thread separately, and each lane of async work and each device stream
    Thread,
    /// Count each request separately, by the id in the slice's own args. Slices with several ids or none are counted
    /// together
    Request,
}

/// Options of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// Groups in which names are counted separately.
    pub names_by: NamesBy,
    /// True to compute how many slices of each name ran at once.
    pub concurrency: bool,
    /// Maximum number of events. A run with more events is refused, because a report takes several times as long as a
    /// merge, and needs temporary files.
    pub most_events: Option<u64>,
    /// Objectives that a request must meet to count as good.
    pub slo: Option<Slo>,
    /// True to report on the whole run instead of the time in which it had requests.
    pub whole: bool,
}

/// Service level objectives of a request. `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slo {
    /// Maximum time from arrival to the first token, in ns.
    pub ttft_ns: Option<i64>,
    /// Maximum time per output token after the first, in ns.
    pub tpot_ns: Option<i64>,
    /// Maximum time from arrival to the end, in ns.
    pub e2e_ns: Option<i64>,
}

/// Parses objectives such as `ttft=500ms,tpot=50ms`.
///
/// # Errors
/// Returns a message with what was expected and found.
pub fn parse_slo(text: &str) -> Result<Slo, String> {
    let mut slo = Slo::default();
    for part in text.split(',') {
        let expected = || {
            format!(
                "expected ttft, tpot or e2e with a duration, such as ttft=500ms,tpot=50ms, found {part:?}"
            )
        };
        let (name, duration) = part.split_once('=').ok_or_else(expected)?;
        let duration = parse_duration(duration.trim())?;
        let ns = i64::try_from(duration.as_nanos()).map_err(|_| expected())?;
        match name.trim() {
            "ttft" => slo.ttft_ns = Some(ns),
            "tpot" => slo.tpot_ns = Some(ns),
            "e2e" => slo.e2e_ns = Some(ns),
            _ => return Err(expected()),
        }
    }
    Ok(slo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_or_explained() {
        let slo = parse_slo("ttft=500ms, e2e=2s").unwrap();
        assert_eq!(
            slo,
            Slo {
                ttft_ns: Some(500_000_000),
                tpot_ns: None,
                e2e_ns: Some(2_000_000_000)
            }
        );
        for wrong in ["", "ttft", "ttf=1s", "ttft=fast", "ttft=1s,"] {
            assert!(parse_slo(wrong).is_err(), "{wrong}");
        }
    }
}
