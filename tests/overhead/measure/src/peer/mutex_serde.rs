//! What one would write by hand: a mutex around a buffered file, and a `serde_json` line.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::contract::{Peer, create, each};
use super::line::{Line, LineArgs, finished_lines, write_line};
use crate::clock::wall_ns;
use crate::{Beat, Kind};

/// The hand-written recorder.
#[derive(Debug)]
pub struct MutexSerde {
    out: Mutex<BufWriter<File>>,
    path: PathBuf,
}

impl MutexSerde {
    /// Starts it with a file in `directory`.
    ///
    /// # Errors
    ///
    /// If the file cannot be made.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        Ok(MutexSerde {
            out: Mutex::new(BufWriter::new(file)),
            path,
        })
    }

    /// Returns the steps of the finished spans in a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn finished(path: &Path) -> io::Result<Vec<u64>> {
        finished_lines(path, r#""ph":"X""#)
    }

    fn span(&self, pid: u32, args: LineArgs<'_>) {
        let start = wall_ns();
        black_box(&args);
        let (ts, dur) = (start as f64 / 1e3, (wall_ns() - start) as f64 / 1e3);
        let line = Line {
            ph: "X",
            pid,
            tid: 7,
            ts,
            dur,
            name: "decode",
            cat: "bench",
            args,
        };
        let mut out = self.out.lock().expect("nobody panics with the file");
        write_line(&mut *out, &line);
    }
}

impl Peer for MutexSerde {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        let pid = std::process::id();
        match kind {
            Kind::Span => each(steps, beat, |_| self.span(pid, LineArgs::None)),
            Kind::Span3 => each(steps, beat, |step| {
                let three = LineArgs::Three {
                    step,
                    phase: "prefill",
                    share: 0.25,
                };
                self.span(pid, three);
            }),
            _ => each(steps, beat, |step| self.span(pid, LineArgs::Step { step })),
        }
    }

    fn settle(&self) {
        self.out
            .lock()
            .expect("nobody panics with the file")
            .flush()
            .expect("the disk has room");
    }

    fn finish(self) -> Option<PathBuf> {
        self.settle();
        Some(self.path)
    }
}
