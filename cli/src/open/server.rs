//! The HTTP side: requests in, the trace or a refusal out.

use super::request::{Answer, Asked, PERFETTO, judge};
use super::served::Served;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tiny_http::{Header, Request, Response, StatusCode};

/// A server of one file; it ends with the process.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    served: Arc<Served>,
    /// Requests that are being answered.
    busy: Arc<AtomicUsize>,
}

impl Server {
    /// Begins to serve on 127.0.0.1.
    pub(crate) fn start(served: Served, port: u16) -> Result<Server, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let http =
            tiny_http::Server::http(address).map_err(|error| not_served(port, error.as_ref()))?;
        let port = http
            .server_addr()
            .to_ip()
            .map_or(port, |address| address.port());
        let (served, busy) = (Arc::new(served), Arc::<AtomicUsize>::default());
        let server = Server {
            port,
            served: Arc::clone(&served),
            busy: Arc::clone(&busy),
        };
        thread::spawn(move || {
            for request in http.incoming_requests() {
                let (served, busy) = (Arc::clone(&served), Arc::clone(&busy));
                busy.fetch_add(1, Ordering::AcqRel);
                // One slow reader must not keep the page's next request waiting.
                thread::spawn(move || {
                    let _ = answer(request, &served); // the reader went away: another may come
                    busy.fetch_sub(1, Ordering::AcqRel);
                });
            }
        });
        Ok(server)
    }

    /// The port, which the system chose if 0 was asked for.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether the trace was fetched whole, and nobody is fetching it any more.
    pub(crate) fn is_done(&self) -> bool {
        self.served.is_fetched() && self.busy.load(Ordering::Acquire) == 0
    }
}

fn not_served(port: u16, error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    if kind != Some(io::ErrorKind::AddrInUse) {
        return format!("127.0.0.1:{port}: {error}");
    }
    format!(
        "port {port} is taken, and ui.perfetto.dev loads from port {} only. Is another sa-profile open, or trace_processor --httpd, still running? \
         `ss -ltnp 'sport = :{port}'` names it. Or open the file by hand in https://ui.perfetto.dev",
        super::PORT
    )
}

fn answer(request: Request, served: &Served) -> io::Result<()> {
    let value = |name: &'static str| {
        let header = request
            .headers()
            .iter()
            .find(|header| header.field.equiv(name));
        header.map(|header| header.value.as_str())
    };
    let method = request.method().to_string();
    let asked = Asked {
        method: &method,
        path: request.url(),
        host: value("Host"),
        origin: value("Origin"),
        site: value("Sec-Fetch-Site"),
    };
    match judge(asked, &served.name) {
        Answer::Trace => {
            let (whole, length) = served.read()?;
            let response =
                Response::new(StatusCode(200), trace_headers(), whole, Some(length), None);
            // Chunks would leave the page without a length, and so without progress.
            request.respond(response.with_chunked_threshold(usize::MAX))
        }
        Answer::Preflight => request.respond(Response::new(
            StatusCode(204),
            preflight_headers(),
            io::empty(),
            Some(0),
            None,
        )),
        Answer::Refused(status, why) => {
            request.respond(Response::from_string(format!("{why}\n")).with_status_code(status))
        }
    }
}

fn trace_headers() -> Vec<Header> {
    let mut headers = page_headers();
    headers.push(header("Content-Type", "application/octet-stream"));
    headers.push(header("X-Content-Type-Options", "nosniff"));
    headers
}

fn preflight_headers() -> Vec<Header> {
    let mut headers = page_headers();
    headers.push(header("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"));
    headers.push(header("Access-Control-Allow-Headers", "*"));
    // Browsers ask for it before a public page may reach this machine.
    headers.push(header("Access-Control-Allow-Private-Network", "true"));
    headers
}

fn page_headers() -> Vec<Header> {
    vec![
        header("Access-Control-Allow-Origin", PERFETTO),
        header("Vary", "Origin"),
        header("Cache-Control", "no-cache"),
    ]
}

fn header(name: &'static str, value: &'static str) -> Header {
    Header::from_bytes(name, value).expect("names and values are plain text")
}
