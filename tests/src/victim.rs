//! Starting victims and ending them: the side of the tests. The victim itself is `bin/host/victim.rs`.

use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::host_support::{Host, Live, Outcome, scratch};
use crate::order::Order;
use crate::progress::{Control, Progress};

/// A running victim with a run directory and a progress file of its own; killed when dropped.
pub struct Victim {
    live: Option<Live>,
    home: TempDir,
    /// The counters the victim writes.
    pub progress: Progress,
    /// What it was told to do.
    pub order: Order,
}

impl Victim {
    /// Starts `program` (the test's `CARGO_BIN_EXE_host`) recording into a new directory, with more variables.
    pub fn start(program: &str, order: Order, variables: &[(&str, &str)]) -> Self {
        let home = scratch();
        let file = home.path().join("progress");
        let progress = Progress::create(&file);
        let order_text = serde_json::to_string(&order).expect("JSON");
        let host = Host::new(program)
            .arguments(&["victim", &file.display().to_string(), &order_text])
            .variable("RUST_BACKTRACE", "0")
            .recorded_in(&home.path().join("run"))
            .deadline(Duration::from_secs(20));
        let set = |host: Host, (name, value): &(&str, &str)| host.variable(name, value);
        let host = variables.iter().fold(host, set);
        Victim {
            live: Some(host.start()),
            home,
            progress,
            order,
        }
    }

    /// Its run directory.
    pub fn directory(&self) -> PathBuf {
        self.scratch("run")
    }

    /// A path for a test's own files, removed with the victim.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Keeps the directory after the test, for whoever looks into a failure.
    pub fn keep(mut self) -> PathBuf {
        self.home.disable_cleanup(true);
        self.home.path().to_path_buf()
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.live.as_ref().expect("it lives").pid()
    }

    /// Waits until every thread has recorded its first span.
    ///
    /// # Panics
    ///
    /// If that takes over 20 s.
    pub fn wait_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let ready = self.progress.control(Control::Ready);
        while ready.load(Acquire) < self.order.threads as u64 {
            assert!(Instant::now() < deadline, "the victim does not get ready");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Lets the victim go on to its ending or into its stepped region.
    pub fn go(&self) {
        self.progress.control(Control::Go).store(1, Release);
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill(&mut self) {
        self.live.take().expect("it lives").kill();
    }

    /// Waits until it has ended by itself.
    pub fn end(&mut self) -> Outcome {
        self.live.take().expect("it lives").end()
    }

    /// Ends it by SIGTERM.
    pub fn terminate(&mut self) -> Outcome {
        self.live.take().expect("it lives").terminate()
    }
}
