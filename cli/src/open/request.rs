//! What may be asked for: one path, from Perfetto's page or from no page at all. Pure; the server only carries it out.
//!
//! Any page that the user visits can send requests to 127.0.0.1. It is kept out by `Origin` (and `Sec-Fetch-Site`, where a browser sends no origin), and one
//! that has its own name resolve to 127.0.0.1 by `Host`.

use crate::host::is_this_machine;

/// The page that may read the trace.
pub(crate) const PERFETTO: &str = "https://ui.perfetto.dev";

/// What a request says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub(crate) site: Option<&'a str>,
}

/// What to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The trace; a HEAD gets its headers.
    Trace,
    /// What a page may do, asked before it does it.
    Preflight,
    /// Nothing, with this status and why.
    Refused(u16, &'static str),
}

/// Judges a request for the file that is served as `name`.
pub(crate) fn judge(asked: Asked<'_>, name: &str) -> Answer {
    if !asked.host.is_some_and(is_this_machine) {
        return Answer::Refused(403, "the host must be 127.0.0.1 or localhost");
    }
    if !is_from_perfetto_or_no_page(asked) {
        return Answer::Refused(403, "the origin must be https://ui.perfetto.dev");
    }
    let path = asked.path.split('?').next().unwrap_or_default();
    if path.strip_prefix('/') != Some(name) {
        return Answer::Refused(404, "only the trace is served");
    }
    match asked.method {
        "GET" | "HEAD" => Answer::Trace,
        "OPTIONS" => Answer::Preflight,
        _ => Answer::Refused(405, "only GET, HEAD and OPTIONS are answered"),
    }
}

fn is_from_perfetto_or_no_page(asked: Asked<'_>) -> bool {
    match (asked.origin, asked.site) {
        (Some(origin), _) => origin == PERFETTO,
        (None, site) => site.is_none_or(|site| site == "none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked<'static> = Asked {
        method: "GET",
        path: "/t.json",
        host: Some("127.0.0.1:9001"),
        origin: Some(PERFETTO),
        site: Some("cross-site"),
    };

    fn status(asked: Asked<'_>) -> u16 {
        match judge(asked, "t.json") {
            Answer::Trace => 200,
            Answer::Preflight => 204,
            Answer::Refused(status, _) => status,
        }
    }

    #[test]
    fn hosts() {
        for (host, expected) in [
            (Some("127.0.0.1:9001"), 200),
            (Some("LocalHost"), 200),
            (Some("evil.example:9001"), 403),
            (Some("127.0.0.1.evil.example"), 403),
            (Some("127.0.0.1:evil"), 403),
            (Some("localhost:1:2"), 403),
            (Some(""), 403),
            (None, 403),
        ] {
            assert_eq!(status(Asked { host, ..ASKED }), expected, "{host:?}");
        }
    }

    #[test]
    fn origins() {
        for (origin, site, expected) in [
            (Some(PERFETTO), None, 200),
            (Some("http://ui.perfetto.dev"), None, 403),
            (Some("https://ui.perfetto.dev.evil.example"), None, 403),
            (Some("null"), None, 403),
            (Some("http://127.0.0.1:9001"), None, 403),
            (None, None, 200),
            (None, Some("none"), 200),
            (None, Some("cross-site"), 403),
        ] {
            assert_eq!(
                status(Asked {
                    origin,
                    site,
                    ..ASKED
                }),
                expected,
                "{origin:?} {site:?}"
            );
        }
    }

    #[test]
    fn paths_and_methods() {
        for (method, path, expected) in [
            ("GET", "/t.json?x=1", 200),
            ("HEAD", "/t.json", 200),
            ("OPTIONS", "/t.json", 204),
            ("POST", "/t.json", 405),
            ("GET", "/", 404),
            ("GET", "//t.json", 404),
            ("GET", "/../t.json", 404),
            ("GET", "/t.json/", 404),
            ("GET", "t.json", 404),
            ("GET", "/T.json", 404),
        ] {
            assert_eq!(
                status(Asked {
                    method,
                    path,
                    ..ASKED
                }),
                expected,
                "{method} {path}"
            );
        }
    }
}
