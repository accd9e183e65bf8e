//! Starting victims and ending them: the side of the tests. The victim itself is `bin/victim.rs`.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::order::Order;
use crate::progress::{Control, Progress};

/// A running victim with a run directory and a progress file of its own; killed when dropped.
#[derive(Debug)]
pub struct Victim {
    child: Child,
    home: TempDir,
    /// The counters the victim writes.
    pub progress: Progress,
    /// What it was told to do.
    pub order: Order,
}

impl Victim {
    /// Starts `program` (the test's `CARGO_BIN_EXE_victim`) recording into a new directory, with more variables.
    ///
    /// # Errors
    ///
    /// If the directory, the progress file or the process cannot be made.
    pub fn start(program: &str, order: Order, variables: &[(&str, &str)]) -> io::Result<Self> {
        let home = tempfile::Builder::new().prefix("sa-victim-").tempdir()?;
        let file = home.path().join("progress");
        let progress = Progress::create(&file)?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os()
            .filter(|(name, _)| name.to_string_lossy().starts_with("SA_PROFILE_"))
        {
            command.env_remove(name);
        }
        command
            .env("RUST_BACKTRACE", "0")
            .env("SA_PROFILE_DIR", home.path().join("run"))
            .envs(variables.iter().copied())
            .arg(&file)
            .arg(serde_json::to_string(&order)?);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Victim {
            child,
            home,
            progress,
            order,
        })
    }

    /// Its run directory.
    pub fn directory(&self) -> PathBuf {
        self.home.path().join("run")
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
        self.child.id()
    }

    /// Waits until every thread has recorded its first span.
    ///
    /// # Errors
    ///
    /// If that takes over 20 s or the victim ends before it.
    pub fn wait_ready(&mut self) -> io::Result<()> {
        let threads = u64::try_from(self.order.threads).map_err(io::Error::other)?;
        self.wait_for(Control::Ready, threads)
    }

    /// Waits until a counter has reached a value.
    ///
    /// # Errors
    ///
    /// If that takes over 20 s or the victim ends before it.
    pub fn wait_for(&mut self, control: Control, value: u64) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.progress.control(control).load(Acquire) < value {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!(
                    "the victim ended early: {status}"
                )));
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!(
                    "{control:?} of the victim did not reach {value} in 20 s"
                )));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Lets the victim go on to its ending or into its stepped region.
    pub fn go(&self) {
        self.progress.control(Control::Go).store(1, Release);
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    ///
    /// If it cannot be killed or waited for.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Waits until it has ended by itself; kills it after 20 s.
    ///
    /// # Errors
    ///
    /// If it had to be killed.
    pub fn wait_end(&mut self) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kill()?;
        Err(io::Error::other("the victim did not end within 20 s"))
    }

    /// What it wrote to stderr, once it has ended.
    ///
    /// # Errors
    ///
    /// If the pipe cannot be read.
    pub fn words(&mut self) -> io::Result<String> {
        let mut words = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            io::Read::read_to_string(&mut pipe, &mut words)?;
        }
        Ok(words)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only if the process is gone already, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
