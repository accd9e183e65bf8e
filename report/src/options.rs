//! What to report.

use clap::ValueEnum;
use serde::Serialize;
use trace_merge::parse_duration;

/// By what names are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NamesBy {
    /// A name is one, whatever process it is of.
    #[default]
    Run,
    /// Each process by itself.
    Process,
    /// Each thread by itself, or lane of async work, or stream of a device.
    Thread,
    /// Each request by itself, by the id in the slice's own args. Slices of several requests, and of none, are together.
    Request,
}

/// What to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// By what names are told apart.
    pub names_by: NamesBy,
    /// Count how many slices of each name there were at once.
    pub concurrency: bool,
    /// Make none of more events than this: a report takes several times as long as a merge, and temporary files.
    pub most_events: Option<u64>,
    /// What requests have to keep to be good.
    pub slo: Option<Slo>,
    /// Report on the whole run instead of the time in which it had requests.
    pub whole: bool,
}

/// Service level objectives: what a request has to keep to be good. What is `None` is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slo {
    /// Time to first token, from arrival.
    pub ttft_ns: Option<i64>,
    /// Time per output token behind the first.
    pub tpot_ns: Option<i64>,
    /// From arrival to the end.
    pub e2e_ns: Option<i64>,
}

/// Reads objectives such as `ttft=500ms,tpot=50ms`.
///
/// # Errors
/// What was expected and found.
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
