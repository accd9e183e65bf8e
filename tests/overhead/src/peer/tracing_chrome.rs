//! The crate tracing-chrome as a layer of tracing's registry. Its guard is held until the end.

use std::hint::black_box;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;

use super::{Beat, Kind, Peer, create, each};

/// A part of the line of every finished span.
pub(crate) const FINISHED: &str = r#""ph":"E""#;

/// tracing-chrome, writing arguments but no source locations.
pub(crate) struct TracingChrome {
    guard: Mutex<tracing_chrome::FlushGuard>,
    path: PathBuf,
}

impl TracingChrome {
    /// Starts it with a file in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let (file, path) = create(directory)?;
        let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new()
            .writer(file)
            .include_args(true)
            .include_locations(false)
            .build();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
            .map_err(|error| error.to_string())?;
        let guard = Mutex::new(guard);
        Ok(TracingChrome { guard, path })
    }
}

impl Peer for TracingChrome {
    fn record(&self, _: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        each(steps, beat, |step| {
            black_box(&tracing::info_span!("decode", step).entered());
        });
    }

    /// Waits until the file no longer grows, since its flush is only a message to its writer thread.
    fn settle(&self) {
        let guard = self.guard.lock().expect("nobody panics with the guard");
        guard.flush();
        let bytes = || std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        let (mut before, mut now) = (u64::MAX, bytes());
        while now != before {
            std::thread::sleep(Duration::from_millis(25));
            (before, now) = (now, bytes());
        }
    }

    fn finish(self) -> Option<PathBuf> {
        drop(self.guard);
        Some(self.path)
    }
}
