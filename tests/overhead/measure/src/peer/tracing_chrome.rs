//! The crate tracing-chrome behind tracing's registry, its guard held until the end.

use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;

use super::contract::{Peer, create, each};
use super::line::finished_lines;
use crate::{Beat, Kind};

/// tracing-chrome, writing arguments but no source locations.
pub struct TracingChrome {
    guard: Mutex<tracing_chrome::FlushGuard>,
    path: PathBuf,
}

impl TracingChrome {
    /// Starts it with a file in `directory`.
    ///
    /// # Errors
    ///
    /// If the file cannot be made, or the process has a subscriber already.
    pub fn start(directory: &Path) -> Result<Self, String> {
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

    /// Returns the steps of the finished spans in a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn finished(path: &Path) -> io::Result<Vec<u64>> {
        finished_lines(path, r#""ph":"E""#)
    }
}

impl Peer for TracingChrome {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        match kind {
            Kind::Span => each(steps, beat, |_| {
                black_box(&tracing::info_span!("decode").entered());
            }),
            Kind::Span3 => each(steps, beat, |step| {
                let span = tracing::info_span!("decode", step, phase = "prefill", share = 0.25);
                black_box(&span.entered());
            }),
            _ => each(steps, beat, |step| {
                black_box(&tracing::info_span!("decode", step).entered());
            }),
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

    fn finish(self) -> Option<PathBuf> {
        drop(self.guard);
        Some(self.path)
    }
}
