//! The crate fastrace with a reporter that writes a line per span.

use std::borrow::Cow;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use fastrace::Span;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;

use super::contract::{Peer, create, each, roots};
use super::line::{Line, LineArgs, finished_lines, write_line};
use crate::{Beat, Kind};

/// fastrace: a root for each thousand spans, reported by its background thread when the root has ended.
#[derive(Debug)]
pub struct Fastrace {
    path: PathBuf,
}

impl Fastrace {
    /// Starts it with a file in `directory`.
    ///
    /// # Errors
    ///
    /// If the file cannot be made.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        fastrace::set_reporter(LineReporter(BufWriter::new(file)), Config::default());
        Ok(Fastrace { path })
    }

    /// Returns the steps of the finished spans in a file, in the order of its lines.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn finished(path: &Path) -> io::Result<Vec<u64>> {
        finished_lines(path, r#""name":"decode""#)
    }
}

struct LineReporter(BufWriter<File>);

impl Reporter for LineReporter {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        for span in spans {
            let properties = span.properties.iter();
            let texts = properties.map(|(key, value)| (key.as_ref(), value.as_ref()));
            let line = Line {
                ph: "X",
                pid: 1,
                tid: 1,
                ts: span.begin_time_unix_ns as f64 / 1e3,
                dur: span.duration_ns as f64 / 1e3,
                name: &span.name,
                cat: "bench",
                args: LineArgs::Texts(texts.collect()),
            };
            write_line(&mut self.0, &line);
        }
        self.0.flush().expect("the disk has room");
    }
}

fn span(kind: Kind, step: u64) -> LocalSpan {
    let span = LocalSpan::enter_with_local_parent("decode");
    let text = |step: u64| Cow::from(step.to_string());
    match kind {
        Kind::Span => span,
        Kind::Span3 => span.with_properties(|| {
            [
                ("step", text(step)),
                ("phase", Cow::from("prefill")),
                ("share", Cow::from(black_box(0.25).to_string())),
            ]
        }),
        _ => span.with_property(|| ("step", text(step))),
    }
}

impl Peer for Fastrace {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        for steps in roots(steps) {
            let root = Span::root("root", SpanContext::random());
            let _parent = root.set_local_parent();
            each(steps, beat, |step| {
                black_box(&span(kind, step));
            });
        }
    }

    fn settle(&self) {
        fastrace::flush();
    }

    fn finish(self) -> Option<PathBuf> {
        fastrace::flush();
        Some(self.path)
    }
}
