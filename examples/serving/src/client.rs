//! A minimal HTTP client for completions, with one connection for each request. Responses may be streamed.

use std::io;
use std::net::Ipv4Addr;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::completion::{
    COMPLETIONS_PATH, Completion, CompletionRequest, DONE, ErrorBody, FinishReason,
};

/// The reason why a request got no complete response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The connection could not be opened, or ended too early.
    #[error("connection: {0}")]
    Connection(#[from] io::Error),
    /// The connection broke.
    #[error("connection: {0}")]
    Http(#[from] hyper::Error),
    /// The HTTP request is invalid.
    #[error("connection: {0}")]
    Request(#[from] hyper::http::Error),
    /// The server responded with an error.
    #[error("HTTP {status}: {message}")]
    Status { status: StatusCode, message: String },
    /// The server ended the stream with an error.
    #[error("finish_reason error: {0}")]
    Stream(String),
    /// The response is not a completion.
    #[error("invalid response: {0}")]
    Answer(#[from] serde_json::Error),
}

/// A complete response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) tokens: usize,
}

/// Sends one request to the server on this host's `port` and waits for the complete response.
///
/// # Errors
///
/// See [`RequestError`].
pub(crate) async fn complete(
    port: u16,
    request: &CompletionRequest,
) -> Result<Reply, RequestError> {
    let response = send(port, request).await?;
    let status = response.status();
    if status != StatusCode::OK {
        let body = response.into_body().collect().await?.to_bytes();
        let message = serde_json::from_slice::<ErrorBody>(&body).map(|body| body.error);
        return Err(RequestError::Status {
            status,
            message: message.unwrap_or_default(),
        });
    }
    if request.stream {
        return read_stream(response.into_body()).await;
    }
    let body = response.into_body().collect().await?.to_bytes();
    let mut completion: Completion = serde_json::from_slice(&body)?;
    let choice = completion.choices.pop();
    let text = choice.map(|choice| choice.text).unwrap_or_default();
    let tokens = completion.usage.map_or(0, |usage| usage.completion_tokens);
    Ok(Reply { text, tokens })
}

async fn send(port: u16, request: &CompletionRequest) -> Result<Response<Incoming>, RequestError> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::post(COMPLETIONS_PATH)
        .header(header::HOST, format!("127.0.0.1:{port}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(serde_json::to_vec(request)?)))?;
    Ok(sender.send_request(request).await?)
}

async fn read_stream(mut body: Incoming) -> Result<Reply, RequestError> {
    let mut stream = EventStream::default();
    let mut reply = Reply::default();
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        for data in stream.feed(frame.data_ref().map_or(&[], |data| data)) {
            if data == DONE {
                return Ok(reply);
            }
            add_chunk(&mut reply, serde_json::from_str(&data)?)?;
        }
    }
    Err(io::Error::other("the stream ended before the last event").into())
}

/// Adds the token of one event to the reply. Fails if the event reports an error.
fn add_chunk(reply: &mut Reply, mut chunk: Completion) -> Result<(), RequestError> {
    let Some(choice) = chunk.choices.pop() else {
        return Ok(());
    };
    match choice.finish_reason {
        Some(FinishReason::Error) => Err(RequestError::Stream(chunk.error.unwrap_or_default())),
        Some(FinishReason::Length) => Ok(()),
        None => {
            reply.text.push_str(&choice.text);
            reply.tokens += 1;
            Ok(())
        }
    }
}

/// A parser that splits a body into server-sent events.
#[derive(Debug, Default)]
struct EventStream {
    rest: Vec<u8>,
}

impl EventStream {
    /// Adds bytes of the body and returns the data of all events that are now complete.
    fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = self.rest.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event);
            let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
            events.extend(data.map(|data| data.trim().to_owned()));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_body_is_cut() {
        let body = b"data: {\"a\":1}\n\n: a comment\n\ndata:[DONE]\n\n";
        for cut in 0..body.len() {
            let mut stream = EventStream::default();
            let mut events = stream.feed(&body[..cut]);
            events.extend(stream.feed(&body[cut..]));
            assert_eq!(events, ["{\"a\":1}", "[DONE]"], "cut at {cut}");
        }
    }
}
