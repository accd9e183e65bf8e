//! Parses a request and rejects what no site answers. This module does no I/O; the connection reads and writes.

use super::Site;
use super::host::is_this_machine;
use super::response::{Refusal, Response};
use super::token::Token;
use httparse::{EMPTY_HEADER, Error, Header, Status};

/// Limits for requests. Valid ones need a few hundred bytes.
const HEAD_BYTES: usize = 8 << 10;
const TARGET_BYTES: usize = 2 << 10;
const HEADERS: usize = 64;

/// A request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// Path, beginning with `/`.
    pub(crate) path: &'a str,
    /// Part of the address after the first `?`.
    pub(crate) query: &'a str,
    headers: &'a [Header<'a>],
}

/// Returns the answer to the part of a request that has arrived; `None` while more of it is needed.
pub(crate) fn respond<S: Site>(bytes: &[u8], site: &S) -> Option<Response> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let answer = match parse(bytes, &mut headers) {
        Ok(None) => return None,
        Ok(Some((request, is_newer))) => request.answer(is_newer, site),
        Err(refusal) => Err(refusal),
    };
    let response = answer.unwrap_or_else(|refusal| Response::refusal(refusal, S::METHODS));
    Some(match bytes.starts_with(b"HEAD ") {
        true => response.without_body(),
        false => response,
    })
}

/// Parses a request. Also returns true if it is HTTP/1.1. `None` while more of it is needed.
fn parse<'a>(
    bytes: &'a [u8],
    headers: &'a mut [Header<'a>; HEADERS],
) -> Result<Option<(Request<'a>, bool)>, Refusal> {
    let line = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    if line > TARGET_BYTES {
        return Err((414, "the address is too long"));
    }
    let mut parsed = httparse::Request::new(headers);
    match parsed.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES => return Ok(None),
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            return Err((431, "the request is too long"));
        }
        Err(Error::Version) => return Err((505, "only HTTP/1.0 and HTTP/1.1 are supported")),
        Err(_) => return Err((400, "this is not an HTTP request")),
    }
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        method: parsed.method.unwrap_or_default(),
        path,
        query,
        headers: parsed.headers,
    };
    Ok(Some((request, parsed.version == Some(1))))
}

impl Request<'_> {
    /// Returns the values of a header.
    pub(crate) fn values<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b [u8]> {
        let headers = self.headers.iter();
        let named = headers.filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value)
    }

    /// Returns true if the header `Authorization` carries the token.
    pub(crate) fn has_bearer(&self, token: &Token) -> bool {
        let is_token = |value: &[u8]| {
            let parts = value.split_at_checked(7);
            parts.is_some_and(|(scheme, shown)| {
                scheme.eq_ignore_ascii_case(b"Bearer ") && token.matches(shown.trim_ascii())
            })
        };
        self.values("Authorization").any(is_token)
    }

    fn answer<S: Site>(&self, is_newer: bool, site: &S) -> Result<Response, Refusal> {
        if !S::METHODS.split(", ").any(|method| method == self.method) {
            return Err((405, "this method is not supported"));
        }
        self.check_host(is_newer, site.is_loopback())?;
        let has_body = self.values("Content-Length").any(|length| length != b"0")
            || self.values("Transfer-Encoding").next().is_some();
        if has_body {
            return Err((400, "a request must have no body"));
        }
        if !self.path.starts_with('/') {
            return Err((400, "expected an address that begins with /"));
        }
        site.answer(self)
    }

    /// Checks the `Host` header. A page that the user visits may make its own name point to 127.0.0.1, but `Host` still contains that name.
    fn check_host(&self, is_newer: bool, is_loopback: bool) -> Result<(), Refusal> {
        let mut hosts = self.values("Host");
        let host = hosts.next();
        if hosts.next().is_some() || host.is_none() && is_newer {
            return Err((400, "expected one Host header"));
        }
        let is_here = host.is_some_and(|host| std::str::from_utf8(host).is_ok_and(is_this_machine));
        match is_loopback && !is_here {
            true => Err((403, "the host must be 127.0.0.1 or localhost")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site that answers `yes` to every valid request.
    struct Yes {
        is_loopback: bool,
    }

    impl Site for Yes {
        const METHODS: &'static str = "GET, HEAD";

        fn is_loopback(&self) -> bool {
            self.is_loopback
        }

        fn answer(&self, _: &Request<'_>) -> Result<Response, Refusal> {
            Ok(Response::from_bytes(200, "", b"yes".to_vec().into()))
        }
    }

    fn status(text: &str, is_loopback: bool) -> Option<u16> {
        let response = respond(text.as_bytes(), &Yes { is_loopback })?;
        Some(response.status())
    }

    #[test]
    fn requests_to_this_machine() {
        let host = "Host: 127.0.0.1:9002\r\n\r\n";
        let cases = [
            ("GET / HTTP/1.1\r\n", host, 200),
            ("HEAD /stats HTTP/1.1\r\n", host, 200),
            ("GET /stats?x=1 HTTP/1.1\r\n", host, 200),
            ("GET /metrics HTTP/1.0\r\n", host, 200),
            ("GET /metrics HTTP/1.1\r\n", "\r\n", 400),
            (
                "GET /metrics HTTP/1.1\r\n",
                "Host: evil.example\r\n\r\n",
                403,
            ),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n", host, 400),
            ("GET http://127.0.0.1/stats HTTP/1.1\r\n", host, 400),
            ("POST /stats HTTP/1.1\r\n", host, 405),
            ("OPTIONS * HTTP/1.1\r\n", host, 405),
            ("GET /stats HTTP/1.1\r\nContent-Length: 3\r\n", host, 400),
            (
                "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
                host,
                400,
            ),
            ("GET /stats HTTP/2.0\r\n", host, 505),
            ("GET /stats\r\n", host, 400),
            ("GET  /stats HTTP/1.1\r\n", host, 400),
            ("\u{16}\u{3}\u{1} HTTP/1.1\r\n", host, 400),
            ("GET / HTTP/1.1\r\nno colon\r\n", host, 400),
            ("GET / HTTP/1.1\r\n folded: x\r\n", host, 400),
            ("GET / HTTP/1.1\r\nx: \0\r\n", host, 400),
        ];
        for (line, rest, expected) in cases {
            let text = format!("{line}{rest}");
            assert_eq!(status(&text, true), Some(expected), "{text:?}");
        }
        assert_eq!(status("", true), None);
        let whole = format!("GET / HTTP/1.1\r\n{host}");
        for cut in 1..whole.len() {
            assert_eq!(status(&whole[..cut], true), None, "{cut}");
        }
    }

    #[test]
    fn long_requests_are_refused_before_they_end() {
        let long = format!("GET /{}", "x".repeat(TARGET_BYTES));
        assert_eq!(status(&long, true), Some(414));
        let header = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(HEAD_BYTES));
        assert_eq!(status(&header, true), Some(431));
        let many = format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(HEADERS + 1));
        assert_eq!(status(&many, true), Some(431));
    }

    #[test]
    fn beyond_this_machine_any_host_will_do() {
        let text = "GET / HTTP/1.1\r\nHost: node-3:9002\r\n\r\n";
        assert_eq!(status(text, false), Some(200));
        assert_eq!(status(text, true), Some(403));
    }
}
