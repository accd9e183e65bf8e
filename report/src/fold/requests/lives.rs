//! Splits the moments with one id into the requests that used it, one after another.

use super::life::Life;
use crate::gather::request_moment::{RequestMoment, RequestToken};

/// If a request lacks a kind of begin, one this soon after its end still belongs to it, because the clocks of two hosts may differ.
pub(crate) const APART_NS: i64 = 100_000_000;

/// Separates the requests that used one id. It takes their moments in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    life: Option<Life>,
}

impl Lives {
    /// Returns the requests with one id, from sorted moments and tokens.
    pub(crate) fn all(moments: &[RequestMoment], tokens: &[RequestToken]) -> Vec<Life> {
        let (mut lives, mut found) = (Lives::default(), Vec::new());
        let mut tokens = tokens.iter().peekable();
        for moment in moments {
            while let Some(token) = tokens.next_if(|token| token.ns < moment.ts_ns) {
                lives.token(token);
            }
            found.extend(lives.take(moment));
        }
        tokens.for_each(|token| lives.token(token));
        found.extend(lives.end());
        found
    }

    /// Takes a moment. If it begins another request, returns the previous one.
    pub(crate) fn take(&mut self, moment: &RequestMoment) -> Option<Life> {
        let before = self.life.take_if(|life| is_begin_of_next(life, moment));
        self.life.get_or_insert_default().take(moment);
        before
    }

    /// Takes a token.
    pub(crate) fn token(&mut self, token: &RequestToken) {
        self.life.get_or_insert_default().token(token);
    }

    /// Returns the last request.
    pub(crate) fn end(self) -> Option<Life> {
        self.life
    }
}

/// Returns true if the request has ended and this moment begins the next one with its id.
fn is_begin_of_next(life: &Life, moment: &RequestMoment) -> bool {
    let is_after = |free_ns: i64| {
        let apart_ns = moment.ts_ns.saturating_sub(free_ns);
        apart_ns > APART_NS || apart_ns >= 0 && life.has(moment.kind)
    };
    moment.kind.is_begin() && life.free_ns().is_some_and(is_after)
}
