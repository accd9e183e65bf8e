//! The API process's connection to the engine core: sends requests and receives their tokens.

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::{io, process, thread};

use sa_recorder::{FlowId, FlowPhase, flow, instant, span};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::completion::MODEL;
use crate::protocol::{self, Hello, NewRequest, Output, OutputEvent, ToEngine, Token};

/// The connection to the engine core, and the open requests.
#[derive(Debug)]
pub(super) struct AsyncLlmEngine {
    engine: Mutex<UnixStream>,
    requests: Mutex<Requests>,
    added: AtomicU64,
    receiver: Mutex<Option<JoinHandle<()>>>,
}

/// The requests that wait for tokens.
#[derive(Debug, Default)]
struct Requests {
    open: HashMap<String, UnboundedSender<OutputEvent>>,
    /// True once the engine core is gone.
    closed: bool,
}

impl AsyncLlmEngine {
    /// Connects to the engine core and starts the thread that receives tokens.
    ///
    /// # Errors
    ///
    /// If the engine core cannot be reached or the thread cannot be started.
    pub(super) fn start(socket: &Path) -> io::Result<Arc<AsyncLlmEngine>> {
        let _span = span!("serving", "AsyncLLMEngine.start", model_id = MODEL);
        let mut stream = UnixStream::connect(socket)?;
        protocol::send(&mut stream, &Hello::Api)?;
        let outputs = stream.try_clone()?;
        let engine = Arc::new(AsyncLlmEngine {
            engine: Mutex::new(stream),
            requests: Mutex::default(),
            added: AtomicU64::new(0),
            receiver: Mutex::default(),
        });
        let receiver = Arc::clone(&engine);
        let thread = thread::Builder::new().name("engine outputs".into());
        *lock(&engine.receiver) = Some(thread.spawn(move || receiver.receive(outputs))?);
        Ok(engine)
    }

    /// Closes the connection and waits for the thread that receives tokens, because it may have a span open.
    pub(super) fn stop(&self) {
        let _ = lock(&self.engine).shutdown(Shutdown::Both);
        let receiver = lock(&self.receiver).take();
        let _ = receiver.map(JoinHandle::join);
    }

    /// Returns the id of a new request. It is also the id of the request's flow, so it contains the process id, which differs between runs.
    pub(super) fn next_id(&self) -> String {
        let number = self.added.fetch_add(1, Ordering::Relaxed) + 1;
        format!("cmpl-{:x}-{number}", process::id())
    }

    /// Sends a request to the engine core. Its flow through the processes starts here.
    ///
    /// # Errors
    ///
    /// If the engine core is gone.
    pub(super) fn add_request(
        self: &Arc<Self>,
        id: &str,
        prompt: Vec<Token>,
        max_tokens: usize,
    ) -> io::Result<RequestHandle> {
        let _span = span!(
            "serving",
            "AsyncLLMEngine.add_request",
            request_id = id,
            max_new_tokens = max_tokens
        );
        let (sender, events) = mpsc::unbounded_channel();
        self.open(id, sender)?;
        let handle = RequestHandle {
            id: id.to_owned(),
            events,
            engine: Arc::clone(self),
        };
        flow(FlowPhase::Start, "request", FlowId::from_text(id));
        instant!(
            "serving",
            "request.queued",
            request_id = id,
            prompt_tokens = prompt.len()
        );
        let request = NewRequest {
            request_id: id.to_owned(),
            prompt,
            max_tokens,
        };
        self.send(&ToEngine::Add(request))?;
        Ok(handle)
    }

    fn open(&self, id: &str, events: UnboundedSender<OutputEvent>) -> io::Result<()> {
        let mut requests = lock(&self.requests);
        if requests.closed {
            return Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the engine core is gone",
            ));
        }
        requests.open.insert(id.to_owned(), events);
        Ok(())
    }

    fn send(&self, message: &ToEngine) -> io::Result<()> {
        protocol::send(&mut *lock(&self.engine), message)
    }

    /// Forwards the engine core's outputs until its connection ends. Then all open requests fail.
    fn receive(&self, mut stream: UnixStream) {
        while let Ok(Some(outputs)) = protocol::receive::<Vec<Output>>(&mut stream) {
            let _span = span!(
                "serving",
                "AsyncLLMEngine.process_outputs",
                outputs = outputs.len()
            );
            outputs.into_iter().for_each(|output| self.forward(output));
        }
        let mut requests = lock(&self.requests);
        requests.closed = true;
        for (_, events) in requests.open.drain() {
            let _ = events.send(OutputEvent::Failed("the engine core is gone".to_owned()));
        }
    }

    fn forward(&self, output: Output) {
        let Output { request_id, event } = output;
        let mut requests = lock(&self.requests);
        let Some(events) = requests.open.get(&request_id) else {
            return;
        };
        if let OutputEvent::Token(token) = event {
            instant!(
                "serving",
                "request.token",
                request_id = request_id.as_str(),
                token = token
            );
            let _ = events.send(event);
            return;
        }
        flow(FlowPhase::End, "request", FlowId::from_text(&request_id));
        let _ = events.send(event);
        requests.open.remove(&request_id);
    }

    /// Aborts a request whose client is gone, also in the engine core.
    fn abandon(&self, id: &str) {
        if lock(&self.requests).open.remove(id).is_none() {
            return;
        }
        let _span = span!("serving", "AsyncLLMEngine.abort", request_id = id);
        flow(FlowPhase::End, "request", FlowId::from_text(id));
        let _ = self.send(&ToEngine::Abort {
            request_id: id.to_owned(),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open request. Dropping it before it has finished aborts it.
#[derive(Debug)]
pub(super) struct RequestHandle {
    id: String,
    events: UnboundedReceiver<OutputEvent>,
    engine: Arc<AsyncLlmEngine>,
}

impl RequestHandle {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the next event of the request.
    pub(super) async fn next(&mut self) -> OutputEvent {
        let event = self.events.recv().await;
        event.unwrap_or_else(|| OutputEvent::Failed("the request was closed".to_owned()))
    }
}

impl Drop for RequestHandle {
    fn drop(&mut self) {
        self.engine.abandon(&self.id);
    }
}
