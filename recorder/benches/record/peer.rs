//! Other recorders, doing the same: a span with one integer argument that ends up in a file.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;
use tracing_subscriber::layer::SubscriberExt;

use crate::clock::wall_ns;

/// A recorder that a child can measure.
pub(crate) trait Peer: Sync {
    /// Records `count` spans.
    fn record(&self, count: u64);
    /// Waits until what was recorded is written.
    fn settle(&self);
    /// Ends the recording and returns its file.
    fn finish(self) -> PathBuf;
}

/// One line, as the hand-written recorder and fastrace's reporter write it.
#[derive(Serialize)]
struct Line<'a> {
    ph: &'a str,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    name: &'a str,
    cat: &'a str,
    args: LineArgs<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum LineArgs<'a> {
    Step { step: u64 },
    Text { step: &'a str },
}

fn create(directory: &Path) -> Result<(File, PathBuf), String> {
    let path = directory.join("peer.json");
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((file, path))
}

fn write_line(out: &mut impl Write, line: &Line<'_>) {
    serde_json::to_writer(&mut *out, line).expect("the line is plain data and the disk has room");
    out.write_all(b"\n").expect("the disk has room");
}

/// tracing-chrome behind tracing's registry.
pub(crate) struct TracingChrome {
    guard: Mutex<tracing_chrome::FlushGuard>,
    path: PathBuf,
}

impl TracingChrome {
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new()
            .writer(file)
            .include_args(true)
            .include_locations(false)
            .build();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
            .map_err(|error| error.to_string())?;
        Ok(TracingChrome {
            guard: Mutex::new(guard),
            path,
        })
    }
}

impl Peer for TracingChrome {
    fn record(&self, count: u64) {
        for step in 0..count {
            let span = tracing::info_span!("decode", step = step).entered();
            black_box(&span);
        }
    }

    /// Its flush is a message to its writer thread, so this waits until the file no longer grows.
    fn settle(&self) {
        self.guard
            .lock()
            .expect("nobody panics with the guard")
            .flush();
        let bytes = || std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        let mut last = bytes();
        loop {
            std::thread::sleep(Duration::from_millis(25));
            let now = bytes();
            if now == last {
                return;
            }
            last = now;
        }
    }

    fn finish(self) -> PathBuf {
        drop(self.guard);
        self.path
    }
}

/// fastrace with a reporter that writes a line per span.
pub(crate) struct Fastrace {
    path: PathBuf,
}

/// Spans under one root: fastrace takes at most 10,240 of them and reports when the root ends.
const SPANS_PER_ROOT: u64 = 1_000;

impl Fastrace {
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        fastrace::set_reporter(
            LineReporter(BufWriter::new(file)),
            fastrace::collector::Config::default(),
        );
        Ok(Fastrace { path })
    }
}

struct LineReporter(BufWriter<File>);

impl fastrace::collector::Reporter for LineReporter {
    fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
        for span in spans {
            let step = span
                .properties
                .first()
                .map_or("", |(_, value)| value.as_ref());
            let (ts, dur) = (
                span.begin_time_unix_ns as f64 / 1e3,
                span.duration_ns as f64 / 1e3,
            );
            let line = Line {
                ph: "X",
                pid: 1,
                tid: 1,
                ts,
                dur,
                name: &span.name,
                cat: "bench",
                args: LineArgs::Text { step },
            };
            write_line(&mut self.0, &line);
        }
        self.0.flush().expect("the disk has room");
    }
}

impl Peer for Fastrace {
    fn record(&self, count: u64) {
        let mut step = 0;
        while step < count {
            let root = fastrace::Span::root("root", fastrace::collector::SpanContext::random());
            let _parent = root.set_local_parent();
            let last = count.min(step + SPANS_PER_ROOT);
            while step < last {
                let span = fastrace::local::LocalSpan::enter_with_local_parent("decode")
                    .with_property(|| ("step", step.to_string()));
                black_box(&span);
                step += 1;
            }
        }
    }

    fn settle(&self) {
        fastrace::flush();
    }

    fn finish(self) -> PathBuf {
        fastrace::flush();
        self.path
    }
}

/// A mutex around a buffered file and a `serde_json` line.
pub(crate) struct MutexSerde {
    out: Mutex<BufWriter<File>>,
    path: PathBuf,
}

impl MutexSerde {
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        Ok(MutexSerde {
            out: Mutex::new(BufWriter::new(file)),
            path,
        })
    }
}

impl Peer for MutexSerde {
    fn record(&self, count: u64) {
        let pid = std::process::id();
        for step in 0..count {
            let start = wall_ns();
            black_box(step);
            let (ts, dur) = (start as f64 / 1e3, (wall_ns() - start) as f64 / 1e3);
            let line = Line {
                ph: "X",
                pid,
                tid: 7,
                ts,
                dur,
                name: "decode",
                cat: "bench",
                args: LineArgs::Step { step },
            };
            let mut out = self.out.lock().expect("nobody panics with the file");
            write_line(&mut *out, &line);
        }
    }

    fn settle(&self) {
        self.out
            .lock()
            .expect("nobody panics with the file")
            .flush()
            .expect("the disk has room");
    }

    fn finish(self) -> PathBuf {
        self.settle();
        self.path
    }
}
