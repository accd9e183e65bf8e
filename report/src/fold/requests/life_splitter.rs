//! Splits the events with one id into the requests that used it, one after another.

use super::life::Life;
use crate::gather::request_moment::{RequestMoment, RequestToken};

/// If a request lacks a kind of start, a start of that kind this soon after its end still belongs to it, because the
/// clocks of two hosts may differ.
pub(crate) const APART_NS: i64 = 100_000_000;

/// Splits the requests that used one id. Their events must be added in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LifeSplitter {
    life: Option<Life>,
}

impl LifeSplitter {
    /// Calls `found` with each request that used one id, built from its sorted events and tokens.
    pub(crate) fn each<'a, E>(
        moments: impl IntoIterator<Item = &'a RequestMoment>,
        tokens: impl IntoIterator<Item = &'a RequestToken>,
        mut found: impl FnMut(Life) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut splitter, mut tokens) = (LifeSplitter::default(), tokens.into_iter().peekable());
        for moment in moments {
            while let Some(token) = tokens.next_if(|token| token.ns < moment.ts_ns) {
                splitter.token(token);
            }
            splitter.add(moment).map_or(Ok(()), &mut found)?;
        }
        tokens.for_each(|token| splitter.token(token));
        splitter.life.map_or(Ok(()), found)
    }

    /// Adds an event. If it starts another request, returns the previous one.
    fn add(&mut self, moment: &RequestMoment) -> Option<Life> {
        let before = self.life.take_if(|life| is_start_of_next(life, moment));
        self.life.get_or_insert_default().add(moment);
        before
    }

    /// Adds a token.
    fn token(&mut self, token: &RequestToken) {
        self.life.get_or_insert_default().token(token);
    }
}

/// Returns true if the request has ended and this event starts the next one with its id.
fn is_start_of_next(life: &Life, moment: &RequestMoment) -> bool {
    let is_after = |free_ns: i64| {
        let apart_ns = moment.ts_ns.saturating_sub(free_ns);
        apart_ns > APART_NS || apart_ns >= 0 && life.has(moment.kind)
    };
    moment.kind.is_begin() && life.free_ns().is_some_and(is_after)
}
