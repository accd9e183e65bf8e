//! Where the trace goes: chunks of text, handed over in order, compressed and written in parallel where that is possible.

mod chrome_json;
mod gzip;

pub(crate) use chrome_json::{document_head, document_tail};

use gzip::GzipChunk;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, PoisonError};

/// Where encoded bytes go.
pub(crate) enum Target {
    /// A file that chunks may be written to at any offset.
    File(File),
    /// Something that takes bytes in order.
    Stream(Box<dyn Write + Send>),
}

/// Takes the chunks of one trace.
pub(crate) struct Sink {
    compress: bool,
    file: Option<File>,
    turn: Mutex<Turn>,
    next: Condvar,
}

struct Turn {
    /// Number of the chunk that may place itself now.
    index: usize,
    offset: u64,
    failed: bool,
    crc: flate2::Crc,
    stream: Option<Box<dyn Write + Send>>,
}

/// A worker's buffers.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) text: Vec<u8>,
    packed: GzipChunk,
}

impl Sink {
    pub(crate) fn new(target: Target, compress: bool) -> Sink {
        let (file, stream) = match target {
            Target::File(file) => (Some(file), None),
            Target::Stream(stream) => (None, Some(stream)),
        };
        let turn = Turn {
            index: 0,
            offset: 0,
            failed: false,
            crc: flate2::Crc::new(),
            stream,
        };
        Sink {
            compress,
            file,
            turn: Mutex::new(turn),
            next: Condvar::new(),
        }
    }

    /// Writes chunk `index`, whose text is in `scratch`; waits for the chunks before it to have their place.
    pub(crate) fn put(&self, index: usize, scratch: &mut Scratch, last: bool) -> io::Result<()> {
        if self.compress {
            scratch.packed.compress(&scratch.text, index == 0);
        }
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while turn.index != index && !turn.failed {
            turn = self.next.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.failed {
            return Err(io::Error::other("another chunk could not be written"));
        }
        let bytes = if self.compress {
            turn.crc.combine(&scratch.packed.crc);
            if last {
                scratch.packed.end(&turn.crc);
            }
            &scratch.packed.bytes
        } else {
            &scratch.text
        };
        let offset = turn.offset;
        turn.offset += bytes.len() as u64;
        let streamed = turn
            .stream
            .as_mut()
            .map_or(Ok(()), |stream| stream.write_all(bytes));
        turn.failed = streamed.is_err();
        turn.index += 1;
        drop(turn);
        self.next.notify_all();
        streamed?;
        let Some(file) = &self.file else {
            return Ok(());
        };
        file.write_all_at(bytes, offset)
            .inspect_err(|_| self.fail())
    }

    /// Lets everybody who waits give up.
    pub(crate) fn fail(&self) {
        self.turn
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failed = true;
        self.next.notify_all();
    }

    /// Ends the trace; gives its length in bytes.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let mut turn = self
            .turn
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = &mut turn.stream {
            stream.flush()?;
        }
        Ok(turn.offset)
    }
}
