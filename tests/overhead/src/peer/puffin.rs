//! The crate puffin with a sink that writes its frames to a file.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use puffin::{FrameData, GlobalProfiler};

use super::{Beat, Kind, Peer, create, each, roots};

/// puffin: a frame for each thousand spans, packed and written by a thread of its own, as its HTTP server does it.
pub(crate) struct Puffin {
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
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
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

    /// Counts the finished spans in a file, without the root of each frame; a torn frame ends it.
    pub(crate) fn finished(path: &Path) -> io::Result<u64> {
        let mut file = BufReader::new(File::open(path)?);
        let mut spans = 0;
        while let Ok(Some(frame)) = FrameData::read_next(&mut file) {
            spans += (frame.meta().num_scopes as u64).saturating_sub(1);
        }
        Ok(spans)
    }
}

fn write_frames(mut file: File, messages: &Receiver<Message>) {
    for message in messages {
        match message {
            Message::Frame(frame) => {
                let mut bytes = Vec::new();
                let packed = frame.write_into(None, &mut bytes);
                packed.expect("a frame can be packed");
                file.write_all(&bytes).expect("the disk has room");
            }
            Message::Settle(answer) => {
                let _asker_gone = answer.send(());
            }
        }
    }
}

impl Peer for Puffin {
    fn record(&self, _: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        for steps in roots(steps) {
            {
                puffin::profile_scope!("root");
                each(steps, beat, |step| {
                    puffin::profile_scope!("decode", step.to_string());
                });
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
