//! Serves one file to Perfetto's page, and to programs that are not web pages.
//!
//! Any page that the user visits can send requests to 127.0.0.1. They are rejected by their `Origin`, or by `Sec-Fetch-Site` if a browser sends no
//! origin. Other users of this machine can connect, too, so the address of a trace that they may not read contains a token.

use super::served::Served;
use crate::http::Site;
use crate::http::request::Request;
use crate::http::response::{Refusal, Response};
use std::sync::atomic::Ordering;

/// The page that may read the trace.
const PERFETTO: &[u8] = b"https://ui.perfetto.dev";

/// Headers that let Perfetto's page read an answer.
const OF_PAGE: &str = "Access-Control-Allow-Origin: https://ui.perfetto.dev\r\nVary: Origin\r\nCache-Control: no-cache\r\n";
const OF_TRACE: &str = "Content-Type: application/octet-stream\r\n";
/// Answer to the preflight request that browsers send before a public page may reach this machine.
const OF_PREFLIGHT: &str = "Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\nAccess-Control-Allow-Headers: *\r\nAccess-Control-Allow-Private-Network: true\r\n";

impl Site for Served {
    const METHODS: &'static str = "GET, HEAD, OPTIONS";

    fn is_loopback(&self) -> bool {
        true
    }

    fn answer(&self, request: &Request<'_>) -> Result<Response, Refusal> {
        if !is_from_perfetto_or_no_page(request) {
            return Err((403, "the origin must be https://ui.perfetto.dev"));
        }
        if !self.is_at(request.path) {
            return Err((404, "only the trace is served"));
        }
        if request.method == "OPTIONS" {
            let more = format!("{OF_PAGE}{OF_PREFLIGHT}");
            return Ok(Response::from_bytes(204, &more, Vec::new().into()));
        }
        let more = format!("{OF_PAGE}{OF_TRACE}");
        Ok(Response::from_file(&more, self.whole.clone()))
    }

    fn is_over(&self) -> bool {
        self.whole.is_sent.load(Ordering::Acquire)
    }
}

fn is_from_perfetto_or_no_page(request: &Request<'_>) -> bool {
    let mut origins = request.values("Origin").peekable();
    match origins.peek() {
        Some(_) => origins.all(|origin| origin == PERFETTO),
        None => request.values("Sec-Fetch-Site").all(|site| site == b"none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::respond;
    use crate::http::token::Token;

    const PAGE: &str = "Origin: https://ui.perfetto.dev\r\n";

    /// Returns the status of a request for a trace, which may have a token.
    fn status(token: Option<&str>, line: &str, headers: &str) -> u16 {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.json");
        std::fs::write(&path, "[]").unwrap();
        let served = Served {
            token: token.and_then(|token| Token::parse(token.as_bytes())),
            ..Served::open(&path).unwrap()
        };
        let text = format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n{headers}\r\n");
        respond(text.as_bytes(), &served).unwrap().status()
    }

    #[test]
    fn origins() {
        for (headers, expected) in [
            (PAGE, 200),
            ("Origin: http://ui.perfetto.dev\r\n", 403),
            ("Origin: https://ui.perfetto.dev.evil.example\r\n", 403),
            ("Origin: null\r\n", 403),
            ("Origin: http://127.0.0.1:9001\r\n", 403),
            ("Origin: https://ui.perfetto.dev\r\nOrigin: null\r\n", 403),
            ("", 200),
            ("Sec-Fetch-Site: none\r\n", 200),
            ("Sec-Fetch-Site: cross-site\r\n", 403),
        ] {
            let found = status(None, "GET /t.json", headers);
            assert_eq!(found, expected, "{headers}");
        }
    }

    #[test]
    fn paths_methods_and_tokens() {
        const TOKEN: Option<&str> = Some("0123456789abcdef");
        for (token, line, expected) in [
            (None, "GET /t.json?x=1", 200),
            (None, "HEAD /t.json", 200),
            (None, "OPTIONS /t.json", 204),
            (None, "POST /t.json", 405),
            (None, "GET /", 404),
            (None, "GET //t.json", 404),
            (None, "GET /../t.json", 404),
            (None, "GET /t.json/", 404),
            (None, "GET t.json", 400),
            (None, "GET /T.json", 404),
            (TOKEN, "GET /0123456789abcdef/t.json", 200),
            (TOKEN, "OPTIONS /0123456789abcdef/t.json", 204),
            (TOKEN, "GET /t.json", 404),
            (TOKEN, "GET /0123456789abcdee/t.json", 404),
            (TOKEN, "GET /0123456789abcdef", 404),
            (TOKEN, "GET /0123456789abcdef/", 404),
            (TOKEN, "GET //t.json", 404),
            (TOKEN, "GET /t.json?token=0123456789abcdef", 404),
        ] {
            assert_eq!(status(token, line, PAGE), expected, "{token:?} {line}");
        }
    }
}
