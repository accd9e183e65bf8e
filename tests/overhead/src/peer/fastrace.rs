//! The crate fastrace with a reporter that writes a line per span.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use fastrace::Span;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;

use super::{Beat, Kind, Peer, create, each, roots};

/// A part of the line of every finished span.
pub(crate) const FINISHED: &str = r#""name":"decode""#;

/// fastrace: a root for each thousand spans, reported by its background thread when the root has ended.
pub(crate) struct Fastrace(PathBuf);

impl Fastrace {
    /// Starts it with a file in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        fastrace::set_reporter(LineReporter(BufWriter::new(file)), Config::default());
        Ok(Fastrace(path))
    }
}

struct LineReporter(BufWriter<File>);

impl LineReporter {
    fn write(&mut self, span: &SpanRecord) -> io::Result<()> {
        let out = &mut self.0;
        let (ts, dur) = (
            span.begin_time_unix_ns as f64 / 1e3,
            span.duration_ns as f64 / 1e3,
        );
        write!(
            out,
            r#"{{"ph":"X","pid":1,"tid":1,"ts":{ts},"dur":{dur},"name":"{}","cat":"bench","args":"#,
            span.name
        )?;
        let args = span.properties.iter().map(|(key, value)| (key, value));
        serde_json::to_writer(&mut *out, &args.collect::<BTreeMap<_, _>>())?;
        out.write_all(b"}\n")
    }
}

impl Reporter for LineReporter {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        let written = spans.iter().try_for_each(|span| self.write(span));
        let written = written.and_then(|()| self.0.flush());
        written.expect("the disk has room");
    }
}

impl Peer for Fastrace {
    fn record(&self, _: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        for steps in roots(steps) {
            let root = Span::root("root", SpanContext::random());
            let _parent = root.set_local_parent();
            each(steps, beat, |step| {
                let span = LocalSpan::enter_with_local_parent("decode");
                black_box(&span.with_property(|| ("step", step.to_string())));
            });
        }
    }

    fn settle(&self) {
        fastrace::flush();
    }

    fn finish(self) -> Option<PathBuf> {
        fastrace::flush();
        Some(self.0)
    }
}
