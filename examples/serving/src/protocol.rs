//! What the processes say to each other: length-prefixed JSON messages over Unix sockets.
//!
//! A frame is four bytes (little endian) of length and that many bytes of JSON. Only this module knows it.

use std::io::{self, Read, Write};

use sa_recorder::{FlowId, FlowPhase, flow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest frame that a reader accepts, in bytes.
const MAX_FRAME_BYTES: u32 = 16 << 20;

/// One entry of the vocabulary.
pub(crate) type Token = u32;

/// The first message on every connection to the engine core: who is calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hello {
    /// The HTTP API process.
    Api,
    /// The worker with this number.
    Worker(usize),
}

/// From the API process to the engine core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToEngine {
    /// A new request.
    Add(NewRequest),
    /// The client went away: stop working on its request.
    Abort {
        /// Which one.
        request_id: String,
    },
}

/// A request as the engine core receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewRequest {
    pub(crate) request_id: String,
    pub(crate) prompt: Vec<Token>,
    pub(crate) max_tokens: usize,
}

/// From the engine core to the API process: news of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) request_id: String,
    pub(crate) event: OutputEvent,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OutputEvent {
    /// One more token.
    Token(Token),
    /// All tokens that it asked for are there.
    Finished,
    /// It cannot be completed; the text says why.
    Failed(String),
}

/// From the engine core to a worker: one step of the running batch. A worker answers with a [`StepOutput`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) step: u64,
    /// The worker's place among the workers that execute this step.
    pub(crate) rank: usize,
    /// How many workers execute this step.
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
    /// Whether no worker has to compute anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.prefill.is_empty() && self.decode.is_empty()
    }

    /// All sequences, prefill first.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.prefill.iter().chain(&self.decode)
    }
}

/// One request's part of a step: the tokens to run, of which the first stands at `position`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sequence {
    pub(crate) request_id: String,
    pub(crate) position: usize,
    pub(crate) tokens: Vec<Token>,
}

impl Sequence {
    /// Number of tokens of its context after this step.
    pub(crate) fn end(&self) -> usize {
        self.position + self.tokens.len()
    }
}

/// Leads the flow of each request through the span that is open here.
pub(crate) fn step_flows<'a>(sequences: impl Iterator<Item = &'a Sequence>) {
    for sequence in sequences {
        flow(FlowPhase::Step, "request", FlowId::of(&sequence.request_id));
    }
}

/// From a worker to the engine core: the next token of each sequence.
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

/// From a child process to the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// Up and serving; the API process adds its port.
    Ready {
        /// TCP port on 127.0.0.1.
        port: Option<u16>,
    },
    /// A worker has opened the span of this step.
    StepStarted(u64),
    /// A worker is about to close the span of this step.
    StepFinished(u64),
}

/// From the launcher to a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Finish and exit. The end of the connection means the same.
    Stop,
}

/// Sends one message.
///
/// # Errors
///
/// The connection's error, or `InvalidInput` for a message above the frame limit.
pub(crate) fn send<T: Serialize>(stream: &mut impl Write, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let len = u32::try_from(body.len()).ok();
    let len = len.filter(|len| *len <= MAX_FRAME_BYTES);
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "message too long for a frame");
    let len = len.ok_or_else(too_long)?;
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&len.to_le_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame)
}

/// Waits for one message; `None` when the other side has closed the connection between two messages.
///
/// # Errors
///
/// The connection's error, `UnexpectedEof` for a torn frame, `InvalidData` for one that is no message.
pub(crate) fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<T>> {
    let mut len = [0; 4];
    if !read_start(stream, &mut len)? {
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

/// Fills `len`; false if the connection ended before its first byte, be it that the other side left something of ours unread.
fn read_start(stream: &mut impl Read, len: &mut [u8; 4]) -> io::Result<bool> {
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
