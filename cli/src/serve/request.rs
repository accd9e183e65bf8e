//! What was asked for, and whether it may be. Pure; the server only carries it out.

use super::pages::Page;
use super::token::Token;
use crate::host::is_this_machine;
use httparse::{EMPTY_HEADER, Error, Header, Status};

/// Longer requests are refused: what is served needs some hundred bytes.
pub(super) const HEAD_BYTES: usize = 8 << 10;
const TARGET_BYTES: usize = 2 << 10;
const HEADERS: usize = 64;

/// Who may ask.
#[derive(Debug)]
pub(super) struct Access {
    /// Whether only this machine can: then `Host` must say so too.
    pub(super) is_loopback: bool,
    pub(super) token: Option<Token>,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) is_head: bool,
    /// A page, or a status and why.
    pub(super) page: Result<Page, (u16, &'static str)>,
}

/// Judges what has arrived of a request; `None` while more of it is needed.
pub(super) fn judge(bytes: &[u8], access: &Access) -> Option<Answer> {
    let refused = |status, why| {
        let page = Err((status, why));
        let is_head = bytes.starts_with(b"HEAD ");
        Some(Answer { is_head, page })
    };
    let line = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    if line > TARGET_BYTES {
        return refused(414, "the address is too long");
    }
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES => return None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            return refused(431, "the request is too long");
        }
        Err(Error::Version) => return refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken"),
        Err(_) => return refused(400, "this is no HTTP request"),
    }
    let asked = Asked {
        method: request.method.unwrap_or_default(),
        target: request.path.unwrap_or_default(),
        is_newer: request.version == Some(1),
        headers: request.headers,
    };
    match asked.page(access) {
        Err((status, why)) => refused(status, why),
        Ok(page) => Some(Answer {
            is_head: asked.method == "HEAD",
            page: Ok(page),
        }),
    }
}

struct Asked<'a> {
    method: &'a str,
    target: &'a str,
    /// HTTP/1.1.
    is_newer: bool,
    headers: &'a [Header<'a>],
}

impl Asked<'_> {
    fn values<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b [u8]> {
        let headers = self.headers.iter();
        let named = headers.filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value)
    }

    fn page(&self, access: &Access) -> Result<Page, (u16, &'static str)> {
        if !matches!(self.method, "GET" | "HEAD") {
            return Err((405, "only GET and HEAD are answered"));
        }
        self.check_host(access)?;
        let has_body = self.values("Content-Length").any(|length| length != b"0")
            || self.values("Transfer-Encoding").next().is_some();
        if has_body {
            return Err((400, "a request for figures has no body"));
        }
        let (path, query) = self.target.split_once('?').unwrap_or((self.target, ""));
        let page = match path {
            "/" => Ok(Page::Html),
            "/stats" => Ok(Page::Stats),
            "/metrics" => Ok(Page::Metrics),
            path if path.starts_with('/') => Err((404, "there are /, /stats and /metrics")),
            _ => Err((400, "an address begins with /")),
        };
        // Who has no token learns nothing, not even what there is.
        if let Some(token) = &access.token
            && !self.shows(token, query, page == Ok(Page::Html))
        {
            return Err((401, "expected the header Authorization: Bearer TOKEN"));
        }
        page
    }

    fn check_host(&self, access: &Access) -> Result<(), (u16, &'static str)> {
        let mut hosts = self.values("Host");
        let host = hosts.next();
        if hosts.next().is_some() || host.is_none() && self.is_newer {
            return Err((400, "a request names one host"));
        }
        let is_here = host.is_some_and(|host| std::str::from_utf8(host).is_ok_and(is_this_machine));
        match access.is_loopback && !is_here {
            true => Err((403, "the host must be 127.0.0.1 or localhost")),
            false => Ok(()),
        }
    }

    /// Whether the request carries the token. Only that for the page may have it in its address: a browser's user cannot set a header.
    fn shows(&self, token: &Token, query: &str, is_page: bool) -> bool {
        let bearer = |value: &[u8]| {
            let (scheme, shown) = value.split_at_checked(7)?;
            scheme
                .eq_ignore_ascii_case(b"Bearer ")
                .then(|| token.is(shown.trim_ascii()))
        };
        let in_header = self
            .values("Authorization")
            .any(|value| bearer(value) == Some(true));
        let mut pairs = query
            .split('&')
            .filter_map(|pair| pair.strip_prefix("token="));
        in_header || is_page && pairs.any(|shown| token.is(shown.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789abcdef").unwrap();
        Token::read(file.path()).unwrap()
    }

    fn status(text: &str, access: &Access) -> Option<u16> {
        let answer = judge(text.as_bytes(), access)?;
        Some(answer.page.map_or_else(|(status, _)| status, |_| 200))
    }

    #[test]
    fn requests_to_this_machine() {
        let access = Access {
            is_loopback: true,
            token: None,
        };
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
            ("GET /stat HTTP/1.1\r\n", host, 404),
            ("GET //stats HTTP/1.1\r\n", host, 404),
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
            assert_eq!(status(&text, &access), Some(expected), "{text:?}");
        }
        assert_eq!(status("", &access), None);
        let whole = format!("GET / HTTP/1.1\r\n{host}");
        for cut in 1..whole.len() {
            assert_eq!(status(&whole[..cut], &access), None, "{cut}");
        }
    }

    #[test]
    fn long_requests_are_refused_before_they_end() {
        let access = Access {
            is_loopback: true,
            token: None,
        };
        let long = format!("GET /{}", "x".repeat(TARGET_BYTES));
        assert_eq!(status(&long, &access), Some(414));
        let header = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(HEAD_BYTES));
        assert_eq!(status(&header, &access), Some(431));
        let many = format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(HEADERS + 1));
        assert_eq!(status(&many, &access), Some(431));
    }

    #[test]
    fn a_token_is_asked_for() {
        let access = Access {
            is_loopback: false,
            token: Some(token()),
        };
        let right = "Authorization: Bearer 0123456789abcdef\r\n";
        let cases = [
            ("/stats", "", 401),
            ("/nothing", "", 401),
            ("/stats", "Authorization: Bearer 0123456789abcdeF\r\n", 401),
            ("/stats", "Authorization: Basic 0123456789abcdef\r\n", 401),
            ("/stats", "Authorization: Bearer\r\n", 401),
            ("/stats", right, 200),
            ("/metrics", &right.to_lowercase(), 200),
            ("/nothing", right, 404),
            ("/?token=0123456789abcdef", "", 200),
            ("/?x&token=0123456789abcdef", "", 200),
            ("/?token=0123456789abcdee", "", 401),
            ("/stats?token=0123456789abcdef", "", 401),
        ];
        for (target, header, expected) in cases {
            let text = format!("GET {target} HTTP/1.1\r\nHost: node-3:9002\r\n{header}\r\n");
            assert_eq!(status(&text, &access), Some(expected), "{text:?}");
        }
    }
}
