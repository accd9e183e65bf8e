//! A small HTTP server, which `serve` and `open` share: a thread and a time limit for each client.
//!
//! [`Server`] accepts clients, [`request`] parses and checks what they send, and a [`Site`] decides what they get.

mod connection;
mod host;
pub(crate) mod privacy;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod server;
pub(crate) mod token;

use request::Request;
use response::{Refusal, Response};

/// Content that a server serves.
pub(crate) trait Site: Send + Sync {
    /// Methods that are answered, as the header `Allow` lists them.
    const METHODS: &'static str;

    /// Returns true if only this machine can reach the server. The `Host` of each request must then be a name of this machine.
    fn is_loopback(&self) -> bool;

    /// Answers a request whose method is in [`Site::METHODS`]. An error is the reason for which the
    /// request is refused.
    fn answer(&self, request: &Request<'_>) -> Result<Response, Refusal>;

    /// Returns true once nobody has to be served any more. The server ends when the answers under way are out.
    fn is_over(&self) -> bool {
        false
    }
}
