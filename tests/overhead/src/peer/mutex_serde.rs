//! The recorder that one would write by hand: a mutex around a buffered file, and a `serde_json` line.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use measure::clock::wall_ns;
use serde::Serialize;

use super::{Beat, Kind, Peer, create, each};

/// A part of the line of every finished span.
pub(crate) const FINISHED: &str = r#""ph":"X""#;

/// The hand-written recorder.
pub(crate) struct MutexSerde {
    out: Mutex<BufWriter<File>>,
    pid: u32,
    path: PathBuf,
}

#[derive(Serialize)]
struct Line {
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    name: &'static str,
    cat: &'static str,
    args: Args,
}

#[derive(Serialize)]
struct Args {
    step: u64,
}

impl MutexSerde {
    /// Starts it with a file in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        Ok(MutexSerde {
            out: Mutex::new(BufWriter::new(file)),
            pid: std::process::id(),
            path,
        })
    }

    fn span(&self, args: Args) {
        let start = wall_ns();
        black_box(&args);
        let line = Line {
            ph: "X",
            pid: self.pid,
            tid: 7,
            ts: start as f64 / 1e3,
            dur: (wall_ns() - start) as f64 / 1e3,
            name: "decode",
            cat: "bench",
            args,
        };
        let mut out = self.out.lock().expect("nobody panics with the file");
        serde_json::to_writer(&mut *out, &line).expect("the disk has room");
        out.write_all(b"\n").expect("the disk has room");
    }
}

impl Peer for MutexSerde {
    fn record(&self, _: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        each(steps, beat, |step| self.span(Args { step }));
    }

    fn settle(&self) {
        let mut out = self.out.lock().expect("nobody panics with the file");
        out.flush().expect("the disk has room");
    }

    fn finish(self) -> Option<PathBuf> {
        self.settle();
        Some(self.path)
    }
}
