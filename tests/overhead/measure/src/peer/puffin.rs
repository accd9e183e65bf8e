//! The crate puffin with a sink that writes its frames to a file.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use puffin::{FrameData, GlobalProfiler, Reader, Stream};

use super::contract::{Peer, create, each, roots};
use crate::{Beat, Kind};

/// puffin: a frame for each thousand spans, packed and written by a thread of its own, as its HTTP server does it.
#[derive(Debug)]
pub struct Puffin {
    to_writer: Sender<Message>,
    path: PathBuf,
}

enum Message {
    Frame(Arc<FrameData>),
    /// Asks for an answer when everything before it is written.
    Settle(Sender<()>),
}

impl Puffin {
    /// Starts it with a file in `directory`.
    ///
    /// # Errors
    ///
    /// If the file cannot be made.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        let (to_writer, messages) = channel();
        std::thread::spawn(move || write_frames(file, &messages));
        let sink = to_writer.clone();
        GlobalProfiler::lock().add_sink(Box::new(move |frame| {
            let _writer_gone = sink.send(Message::Frame(frame));
        }));
        puffin::set_scopes_on(true);
        Ok(Puffin { to_writer, path })
    }

    /// Returns the steps of the finished spans in a file.
    ///
    /// # Errors
    ///
    /// If it cannot be opened; a torn frame ends the search.
    pub fn finished(path: &Path) -> io::Result<Vec<u64>> {
        let mut file = BufReader::new(File::open(path)?);
        let mut steps = Vec::new();
        while let Ok(Some(frame)) = FrameData::read_next(&mut file) {
            let Ok(frame) = frame.unpacked() else {
                break;
            };
            for info in frame.thread_streams.values() {
                collect(&info.stream, 0, &mut steps);
            }
        }
        Ok(steps)
    }
}

fn write_frames(mut file: File, messages: &Receiver<Message>) {
    for message in messages {
        match message {
            Message::Frame(frame) => {
                let mut bytes = Vec::new();
                frame
                    .write_into(None, &mut bytes)
                    .expect("a frame can be packed");
                file.write_all(&bytes).expect("the disk has room");
            }
            Message::Settle(answer) => {
                let _asker_gone = answer.send(());
            }
        }
    }
}

/// Takes the steps of the scopes from `offset` on, and of those in them.
fn collect(stream: &Stream, offset: u64, steps: &mut Vec<u64>) {
    let scopes = Reader::with_offset(stream, offset).into_iter().flatten();
    for scope in scopes.map_while(Result::ok) {
        steps.extend(
            scope
                .record
                .data
                .split(' ')
                .next()
                .and_then(|step| step.parse::<u64>().ok()),
        );
        collect(stream, scope.child_begin_position, steps);
    }
}

impl Peer for Puffin {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        for steps in roots(steps) {
            {
                puffin::profile_scope!("root");
                match kind {
                    Kind::Span => each(steps, beat, |_| {
                        puffin::profile_scope!("decode");
                    }),
                    Kind::Span3 => each(steps, beat, |step| {
                        let share = black_box(0.25);
                        puffin::profile_scope!("decode", format!("{step} prefill {share}"));
                    }),
                    _ => each(steps, beat, |step| {
                        puffin::profile_scope!("decode", step.to_string());
                    }),
                }
            }
            GlobalProfiler::lock().new_frame();
        }
    }

    fn settle(&self) {
        let (answer, answered) = channel();
        let _writer_gone = self.to_writer.send(Message::Settle(answer));
        let _nothing = answered.recv();
    }

    fn finish(self) -> Option<PathBuf> {
        GlobalProfiler::lock().new_frame();
        self.settle();
        Some(self.path)
    }
}
