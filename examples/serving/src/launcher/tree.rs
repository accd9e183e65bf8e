//! The processes of the server. They are started in the order in which they depend on each other, and stopped in the opposite order.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use super::kill::{self, Killed};
use super::process::Process;
use crate::child::Role;
use crate::engine::EngineOptions;
use crate::load::Outcomes;
use crate::options::{DeviceKind, Options};
use crate::protocol::{self, Status};
use crate::worker::WorkerOptions;

/// Maximum number of requests in a batch.
const MAX_BATCH: usize = 8;
const ENGINE_SOCKET: &str = "engine.sock";

/// The running processes.
#[derive(Debug)]
pub(super) struct Tree {
    engine: Process,
    workers: Vec<Process>,
    api: Process,
    port: u16,
}

impl Tree {
    /// Starts all processes and waits until they are ready. If this future is dropped, the started processes are killed.
    ///
    /// Must be polled on the main thread, for the reason given at [`Process::start`].
    ///
    /// # Errors
    ///
    /// If a process cannot be started or does not become ready. The others are killed.
    pub(super) async fn start(options: &Options) -> io::Result<Tree> {
        // Only the owner can access the folder, and it is removed as soon as all processes are connected.
        let folder = tempfile::Builder::new().prefix("serving-demo-").tempdir()?;
        let socket = folder.path().join(ENGINE_SOCKET);
        let count = options.workers.get();
        let engine = EngineOptions {
            workers: count,
            kv_blocks: options.kv_blocks.get(),
            max_batch: MAX_BATCH,
        };
        let engine = Process::start(Role::Engine(engine), &socket)?;
        engine.ready().await?;
        let worker = |index| WorkerOptions {
            index,
            world: count,
            seed: options.seed,
            npu: options.device == DeviceKind::Sim,
            recorded: !options.preload,
        };
        let workers = (0..count).map(|index| Process::start(Role::Worker(worker(index)), &socket));
        let workers = workers.collect::<io::Result<Vec<_>>>()?;
        let api = Process::start(Role::Api, &socket)?;
        for worker in &workers {
            worker.ready().await?;
        }
        let port = api.ready().await?;
        let port = port.ok_or_else(|| io::Error::other("the API process reported no port"))?;
        Ok(Tree {
            engine,
            workers,
            api,
            port,
        })
    }

    /// Returns the HTTP port on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Starts a thread for each worker that reads its messages. With `--kill-worker`, the last worker's thread kills it in the middle of a step.
    pub(super) fn watch_workers(&self, options: &Options, outcomes: &Outcomes) -> WorkerWatch {
        let mut watch = WorkerWatch::default();
        let victim = options.kill_worker.then(|| self.workers.len() - 1);
        for (index, worker) in self.workers.iter().enumerate() {
            let Ok(messages) = worker.messages() else {
                continue;
            };
            if victim == Some(index) {
                let (pid, outcomes) = (worker.pid(), outcomes.clone());
                let name = worker.name().to_owned();
                let enough = options.requests.get() / 3;
                let is_time = move || outcomes.len() >= enough;
                watch.killer = Some(thread::spawn(move || {
                    kill::in_mid_step(&name, pid, messages, is_time)
                }));
            } else {
                let reader = thread::spawn(move || discard(messages));
                watch.readers.push(reader);
            }
        }
        watch
    }

    /// Stops all processes. Returns the problems with their ends.
    pub(super) fn stop(&mut self) -> Vec<String> {
        let first = [&mut self.api, &mut self.engine].into_iter();
        let processes = first.chain(&mut self.workers);
        processes.filter_map(Process::stop).collect()
    }
}

/// Reads and discards a worker's messages, so that it never waits for the launcher.
fn discard(mut messages: UnixStream) {
    while let Ok(Some(_)) = protocol::receive::<Status>(&mut messages) {}
}

/// The threads that read the workers' messages. They end with the workers.
#[derive(Debug, Default)]
pub(super) struct WorkerWatch {
    readers: Vec<JoinHandle<()>>,
    killer: Option<JoinHandle<io::Result<Option<Killed>>>>,
}

impl WorkerWatch {
    /// Waits for the threads. Returns the worker that was killed, and removes its end from the troubles.
    pub(super) fn join(self, troubles: &mut Vec<String>) -> Option<Killed> {
        for reader in self.readers {
            let _ = reader.join();
        }
        let why = match self.killer?.join() {
            Ok(Ok(Some(killed))) => {
                let ended = format!("{} ended", killed.worker);
                troubles.retain(|trouble| !trouble.starts_with(&ended));
                return Some(killed);
            }
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(None)) | Err(_) => "the run ended first".to_owned(),
        };
        troubles.push(format!("no worker was killed: {why}"));
        None
    }
}
