//! The event queue of the engine core, which a thread for each connection fills.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::{io, thread};

use serde::de::DeserializeOwned;

use crate::protocol::{self, Hello, StepOutput, ToEngine};

/// An event for the engine core's loop.
#[derive(Debug)]
pub(super) enum Event {
    Joined(Hello, UnixStream),
    Api(ToEngine),
    ApiGone,
    Output(usize, StepOutput),
    WorkerGone(usize),
    Stop,
}

/// Accepts the connections of the API process and of each worker, and then stops listening.
pub(super) fn accept(listener: &UnixListener, connections: usize, events: &Sender<Event>) {
    for stream in listener.incoming().take(connections) {
        let joined = stream.and_then(|stream| join(stream, events.clone()));
        if joined.is_err() {
            let _ = events.send(Event::Stop);
        }
    }
}

/// Reads the first message of a connection and starts the thread that converts its later messages to events.
fn join(mut stream: UnixStream, events: Sender<Event>) -> io::Result<()> {
    let hello = protocol::receive(&mut stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let _ = events.send(Event::Joined(hello, stream.try_clone()?));
    let name = match hello {
        Hello::Api => "read api".to_owned(),
        Hello::Worker(index) => format!("read worker-{index}"),
    };
    thread::Builder::new()
        .name(name)
        .spawn(move || match hello {
            Hello::Api => forward(stream, &events, Event::Api, Event::ApiGone),
            Hello::Worker(index) => {
                forward(
                    stream,
                    &events,
                    |output| Event::Output(index, output),
                    Event::WorkerGone(index),
                );
            }
        })?;
    Ok(())
}

/// Sends each message as an event, and `gone` when the connection ends.
fn forward<M: DeserializeOwned>(
    mut stream: UnixStream,
    events: &Sender<Event>,
    event: impl Fn(M) -> Event,
    gone: Event,
) {
    while let Ok(Some(message)) = protocol::receive(&mut stream) {
        if events.send(event(message)).is_err() {
            return;
        }
    }
    let _ = events.send(gone);
}
