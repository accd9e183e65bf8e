//! The messages between the processes: length-prefixed JSON over Unix sockets.
//!
//! A frame is a length of four bytes (little endian), followed by that many bytes of JSON. Only this module knows this format.

use std::io::{self, Read, Write};

use sa_recorder::{FlowId, FlowPhase, flow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum size of a frame in bytes.
const MAX_FRAME_BYTES: u32 = 16 << 20;

/// One entry of the vocabulary.
pub(crate) type Token = u32;

/// The first message on every connection to the engine core, which identifies the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hello {
    /// The HTTP API process.
    Api,
    /// The worker with this number.
    Worker(usize),
}

/// A message from the API process to the engine core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToEngine {
    /// A new request.
    Add(NewRequest),
    /// Abort a request, because its client is gone.
    Abort {
        /// The id of the request.
        request_id: String,
    },
}

/// A new request for the engine core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewRequest {
    pub(crate) request_id: String,
    pub(crate) prompt: Vec<Token>,
    pub(crate) max_tokens: usize,
}

/// A message from the engine core to the API process about one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) request_id: String,
    pub(crate) event: OutputEvent,
}

/// An event of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OutputEvent {
    /// One more token.
    Token(Token),
    /// All requested tokens were generated.
    Finished,
    /// The request failed, for this reason.
    Failed(String),
}

/// A message from the engine core to a worker: one step of the running batch. The worker responds with a [`StepOutput`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) step: u64,
    /// The worker's rank among the workers that execute this step.
    pub(crate) rank: usize,
    /// Number of workers that execute this step.
    pub(crate) world: usize,
    pub(crate) batch: Batch,
}

/// The part of a step that is the same for all workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Requests whose cached keys and values are no longer needed.
    pub(crate) release: Vec<String>,
    pub(crate) prefill: Vec<Sequence>,
    pub(crate) decode: Vec<Sequence>,
}

impl Batch {
    /// Returns true if the workers have nothing to compute.
    pub(crate) fn is_empty(&self) -> bool {
        self.prefill.is_empty() && self.decode.is_empty()
    }

    /// Returns all sequences, prefill first.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.prefill.iter().chain(&self.decode)
    }
}

/// One request's part of a step: the tokens to run. `position` is the position of the first one in the request's context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sequence {
    pub(crate) request_id: String,
    pub(crate) position: usize,
    pub(crate) tokens: Vec<Token>,
}

impl Sequence {
    /// Returns the number of tokens of the context after this step.
    pub(crate) fn end(&self) -> usize {
        self.position + self.tokens.len()
    }
}

/// Adds the currently open span to the flow of each request.
pub(crate) fn step_flows<'a>(sequences: impl Iterator<Item = &'a Sequence>) {
    for sequence in sequences {
        flow(
            FlowPhase::Step,
            "request",
            FlowId::from_text(&sequence.request_id),
        );
    }
}

/// A message from a worker to the engine core: the next token of each sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepOutput {
    pub(crate) step: u64,
    pub(crate) samples: Vec<Sample>,
}

/// The next token of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) request_id: String,
    pub(crate) token: Token,
}

/// A message from a child process to the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// The process is ready. The API process adds its port.
    Ready {
        /// TCP port on 127.0.0.1.
        port: Option<u16>,
    },
    /// The worker has opened the span of this step.
    StepStarted(u64),
    /// The worker is about to close the span of this step.
    StepFinished(u64),
}

/// A message from the launcher to a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Finish and exit. The end of the connection has the same meaning.
    Stop,
}

/// Sends one message.
///
/// # Errors
///
/// The connection's error, or `InvalidInput` for a message above the frame limit.
pub(crate) fn send<T: Serialize>(stream: &mut impl Write, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "message too long for a frame");
    let len = u32::try_from(body.len())
        .ok()
        .filter(|len| *len <= MAX_FRAME_BYTES)
        .ok_or_else(too_long)?;
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&len.to_le_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame)
}

/// Waits for one message. Returns `None` if the other side has closed the connection between two messages.
///
/// # Errors
///
/// The connection's error, `UnexpectedEof` for an incomplete frame, `InvalidData` for a frame that is too long or not a message.
pub(crate) fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<T>> {
    let mut len = [0; 4];
    if !read_length(stream, &mut len)? {
        return Ok(None);
    }
    let len = u32::from_le_bytes(len);
    if len > MAX_FRAME_BYTES {
        let why = format!("frame of {len} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut body = Vec::new();
    let read = stream.take(u64::from(len)).read_to_end(&mut body)?;
    if read < len as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Reads the length of a frame. Returns false if the connection ended before the first byte. That includes a reset, which happens if the other side left our data
/// unread.
fn read_length(stream: &mut impl Read, len: &mut [u8; 4]) -> io::Result<bool> {
    loop {
        match stream.read(&mut len[..1]) {
            Ok(0) => return Ok(false),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    stream.read_exact(&mut len[1..]).map(|()| true)
}
