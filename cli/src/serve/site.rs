//! Serves the figures to clients that have the token.

use super::pages::Pages;
use crate::http::Site;
use crate::http::request::Request;
use crate::http::response::{Refusal, Response};
use crate::http::token::Token;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// No caching, no frames, no access by other pages. The page may run its own script and fetch from this server.
const HEADERS: &str = "Cache-Control: no-store\r\nCross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'; \
    style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n";

/// Rule for access to the figures.
#[derive(Debug)]
pub(super) enum Access {
    /// Clients that know the token in the user's file.
    Chosen(Token),
    /// Clients that know the random token, which is part of the printed link. While the flag is false, everybody who reaches the server.
    Random(Token, AtomicBool),
    /// Everybody who reaches the server.
    Everybody,
}

impl Access {
    /// Returns an access with a random token.
    pub(super) fn random(token: Token, is_needed: bool) -> Access {
        Access::Random(token, AtomicBool::new(is_needed))
    }

    /// Returns the token that requests need now.
    fn token(&self) -> Option<&Token> {
        match self {
            Access::Chosen(token) => Some(token),
            Access::Random(token, is_needed) => is_needed.load(Ordering::Acquire).then_some(token),
            Access::Everybody => None,
        }
    }

    /// Asks for the random token from now on. Returns true if it was not needed before.
    pub(super) fn require_token(&self) -> bool {
        match self {
            Access::Random(_, is_needed) => !is_needed.swap(true, Ordering::AcqRel),
            Access::Chosen(_) | Access::Everybody => false,
        }
    }

    /// Returns the query of the link that is printed: the random token, if it is needed.
    pub(super) fn query(&self) -> String {
        match (self, self.token()) {
            (Access::Random(..), Some(token)) => format!("?token={}", token.in_link()),
            _ => String::new(),
        }
    }
}

/// The figures of a run, for everybody who may read them.
#[derive(Debug)]
pub(super) struct FigureSite {
    pub(super) pages: Arc<Pages>,
    pub(super) is_loopback: bool,
    pub(super) access: Arc<Access>,
}

impl Site for FigureSite {
    const METHODS: &'static str = "GET, HEAD";

    fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    fn answer(&self, request: &Request<'_>) -> Result<Response, Refusal> {
        // Without the token a client learns nothing, not even which pages there are.
        if let Some(token) = self.access.token()
            && !has_token(request, token)
        {
            return Err((401, "expected the header Authorization: Bearer TOKEN"));
        }
        let found = self.pages.at(request.path);
        let (kind, body) = found.ok_or((404, "expected /, /stats or /metrics"))?;
        if body.is_empty() {
            return Err((503, "the run has not been read yet"));
        }
        let more = format!("Content-Type: {kind}\r\n{HEADERS}");
        Ok(Response::from_bytes(200, &more, body))
    }
}

/// Returns true if a request carries the token. Only the address of the page may contain it, because users cannot set a header in a browser.
fn has_token(request: &Request<'_>, token: &Token) -> bool {
    let is_page = request.path == "/";
    let pairs = request.query.split('&');
    let mut shown = pairs.filter_map(|pair| pair.strip_prefix("token="));
    request.has_bearer(token) || is_page && shown.any(|shown| token.matches(shown.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::respond;

    #[test]
    fn a_token_is_asked_for() {
        let token = Token::parse(b"0123456789abcdef").unwrap();
        let access = Arc::new(Access::random(token, false));
        let site = FigureSite {
            pages: Arc::default(),
            is_loopback: false,
            access: Arc::clone(&access),
        };
        let status = |target: &str, header: &str| {
            let text = format!("GET {target} HTTP/1.1\r\nHost: node-3:9002\r\n{header}\r\n");
            respond(text.as_bytes(), &site).unwrap().status()
        };
        assert_eq!((status("/", ""), access.query().as_str()), (200, ""));
        assert!(access.require_token() && !access.require_token());
        assert_eq!(access.query(), "?token=0123456789abcdef");
        let right = "Authorization: Bearer 0123456789abcdef\r\n";
        // The run was not polled yet, so /stats and /metrics are empty.
        let cases = [
            ("/stats", "Authorization: Bearer 0123456789abcdeF\r\n", 401),
            ("/stats", "Authorization: Basic 0123456789abcdef\r\n", 401),
            ("/stats", "Authorization: Bearer\r\n", 401),
            ("/stats", right, 503),
            ("/metrics", &right.to_lowercase(), 503),
            ("/nothing", right, 404),
            ("//stats", right, 404),
            ("/?x&token=0123456789abcdef", "", 200),
            ("/?token=0123456789abcdee", "", 401),
        ];
        for (target, header, expected) in cases {
            assert_eq!(status(target, header), expected, "{target} {header:?}");
        }
    }
}
