//! An answer as it goes out.

use super::pages::Page;
use std::sync::Arc;

/// Nothing of it is kept, shown in a frame, or told to other pages. The page runs its own script, and asks where it came from.
const HEADERS: &str = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n";

/// A head and a body that many answers share.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) head: Vec<u8>,
    pub(super) body: Arc<[u8]>,
}

impl Response {
    /// A page; of a HEAD its head alone.
    pub(super) fn page(page: Page, body: Arc<[u8]>, is_head: bool) -> Response {
        let kind = match page {
            Page::Html => "text/html; charset=utf-8",
            Page::Stats => "application/json",
            Page::Metrics => "text/plain; version=0.0.4; charset=utf-8",
        };
        Response::new(200, kind, "", body, is_head)
    }

    /// A refusal, with why in a line.
    pub(super) fn refusal(status: u16, why: &str, is_head: bool) -> Response {
        let more = match status {
            401 => "WWW-Authenticate: Bearer\r\n",
            405 => "Allow: GET, HEAD\r\n",
            503 => "Retry-After: 1\r\n",
            _ => "",
        };
        let body = format!("{why}\n").into_bytes();
        let kind = "text/plain; charset=utf-8";
        Response::new(status, kind, more, body.into(), is_head)
    }

    fn new(status: u16, kind: &str, more: &str, body: Arc<[u8]>, is_head: bool) -> Response {
        let (phrase, length) = (phrase(status), body.len());
        let head = format!(
            "HTTP/1.1 {status} {phrase}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}{HEADERS}\r\n"
        );
        Response {
            head: head.into_bytes(),
            body: if is_head { Arc::from(&[][..]) } else { body },
        }
    }

    /// What of it goes out behind the first `at` bytes.
    pub(super) fn rest(&self, at: usize) -> &[u8] {
        match at.checked_sub(self.head.len()) {
            None => &self.head[at..],
            Some(at) => self.body.get(at..).unwrap_or_default(),
        }
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Refused",
    }
}
