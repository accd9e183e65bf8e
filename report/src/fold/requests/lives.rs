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
    /// Calls `found` with each request with one id, from its sorted moments and tokens.
    pub(crate) fn each<'a, E>(
        moments: impl IntoIterator<Item = &'a RequestMoment>,
        tokens: impl IntoIterator<Item = &'a RequestToken>,
        mut found: impl FnMut(Life) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut lives, mut tokens) = (Lives::default(), tokens.into_iter().peekable());
        for moment in moments {
            while let Some(token) = tokens.next_if(|token| token.ns < moment.ts_ns) {
                lives.token(token);
            }
            lives.take(moment).map_or(Ok(()), &mut found)?;
        }
        tokens.for_each(|token| lives.token(token));
        lives.life.map_or(Ok(()), found)
    }

    /// Takes a moment. If it begins another request, returns the previous one.
    fn take(&mut self, moment: &RequestMoment) -> Option<Life> {
        let before = self.life.take_if(|life| is_begin_of_next(life, moment));
        self.life.get_or_insert_default().take(moment);
        before
    }

    /// Takes a token.
    fn token(&mut self, token: &RequestToken) {
        self.life.get_or_insert_default().token(token);
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
