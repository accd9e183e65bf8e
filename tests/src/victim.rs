//! Starts and ends victims on behalf of the tests. The victim program itself is `bin/host/victim.rs`.

use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::host_support::{Host, Live, Outcome, scratch};
use crate::order::Order;
use crate::progress::{Control, Progress};

/// A running victim with its own run directory and progress file. Killed on drop.
pub struct Victim {
    live: Option<Live>,
    home: TempDir,
    /// Counters that the victim writes.
    pub progress: Progress,
    /// Instructions that the victim received.
    pub order: Order,
}

impl Victim {
    /// Starts `program` (the test's `CARGO_BIN_EXE_host`) with these additional variables, recording into a new directory.
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

    /// Returns the victim's run directory.
    pub fn directory(&self) -> PathBuf {
        self.scratch("run")
    }

    /// Returns a path for the test's own files, which are removed together with the victim.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Keeps the directory after the test so that a failure can be investigated.
    pub fn keep(mut self) -> PathBuf {
        self.home.disable_cleanup(true);
        self.home.path().to_path_buf()
    }

    /// Returns the victim's pid.
    pub fn pid(&self) -> u32 {
        self.live.as_ref().expect("the victim is alive").pid()
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

    /// Lets the victim continue to its ending or into its stepped region.
    pub fn go(&self) {
        self.progress.control(Control::Go).store(1, Release);
    }

    /// Kills the victim with SIGKILL and waits for it.
    pub fn kill(&mut self) {
        self.live.take().expect("the victim is alive").kill();
    }

    /// Waits until the victim has ended by itself.
    pub fn end(&mut self) -> Outcome {
        self.live.take().expect("the victim is alive").end()
    }

    /// Ends the victim with SIGTERM.
    pub fn terminate(&mut self) -> Outcome {
        self.live.take().expect("the victim is alive").terminate()
    }
}
