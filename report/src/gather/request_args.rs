//! Args of an event that describe a request.

use super::reasons::Reasons;
use trace_merge::events::PlacedEvent;

/// Longest plausible time, in µs.
const MOST_US: f64 = 9e15;

/// Args that describe a request. A missing arg is `None` or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestArgs {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// Number of the reason why the request ended, among [`Reasons`].
    pub(crate) reason: u32,
    /// Time that the request spent in the kernel and the event loop before the application got it.
    pub(crate) waited_ns: i64,
}

impl RequestArgs {
    pub(crate) fn of(event: &PlacedEvent<'_>, is_http: bool, reasons: &mut Reasons) -> RequestArgs {
        let number = |name| -> Option<u64> {
            let number = serde_json::from_slice(event.arg(name)?).ok();
            number.filter(|number| *number != u64::MAX)
        };
        let reason = event.arg("reason");
        let reason: Option<String> = reason.and_then(|of| serde_json::from_slice(of).ok());
        RequestArgs {
            prompt_tokens: number("prompt_tokens"),
            cached_tokens: number("cached_tokens"),
            output_tokens: number("output_tokens"),
            reason: reason.map_or(0, |reason| reasons.number(reason)),
            waited_ns: is_http
                .then(|| ns(event, "waited_us"))
                .flatten()
                .unwrap_or(0),
        }
    }

    /// Adds the args of another event: the larger numbers count, and the last reason.
    pub(crate) fn add(&mut self, other: &RequestArgs) {
        self.prompt_tokens = self.prompt_tokens.max(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.max(other.cached_tokens);
        self.output_tokens = self.output_tokens.max(other.output_tokens);
        if other.reason != 0 {
            self.reason = other.reason;
        }
    }
}

/// Returns an arg of an event that is a time in µs.
pub(super) fn ns(event: &PlacedEvent<'_>, name: &str) -> Option<i64> {
    let us: f64 = serde_json::from_slice(event.arg(name)?).ok()?;
    let is_plausible = (0.0..=MOST_US).contains(&us);
    is_plausible.then(|| rounded_ns(us))
}

/// Returns a time in whole ns.
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is beyond all bounds is the bound"
)]
pub(super) fn rounded_ns(us: f64) -> i64 {
    (us * 1e3).round() as i64
}
