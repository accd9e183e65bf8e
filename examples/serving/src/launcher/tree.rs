//! All processes of the server: started in the order in which they need each other, stopped the other way round.

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
use crate::worker::Place;

/// Most requests in a batch of the engine core.
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
    /// Starts all processes and waits until they serve. Those that did start are killed when the wait is given up.
    ///
    /// Must be polled on the main thread, as [`Process::start`] says.
    ///
    /// # Errors
    ///
    /// If one cannot be started or does not come up; those that did are killed.
    pub(super) async fn start(options: &Options) -> io::Result<Tree> {
        // Only its owner can enter the folder, and it is gone as soon as everybody is connected.
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
        let place = |index| Place {
            index,
            world: count,
            seed: options.seed,
            npu: options.device == DeviceKind::Sim,
            recorded: !options.preload,
        };
        let workers = (0..count).map(|index| Process::start(Role::Worker(place(index)), &socket));
        let workers = workers.collect::<io::Result<Vec<_>>>()?;
        let api = Process::start(Role::Api, &socket)?;
        for worker in &workers {
            worker.ready().await?;
        }
        let port = api.ready().await?;
        let port = port.ok_or_else(|| io::Error::other("the API process told no port"))?;
        Ok(Tree {
            engine,
            workers,
            api,
            port,
        })
    }

    /// The HTTP port on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Reads what the workers say, on a thread each; the last worker is killed in the middle of a step if the options say so.
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
                let ripe = move || outcomes.len() >= enough;
                watch.killer = Some(thread::spawn(move || {
                    kill::in_mid_step(&name, pid, messages, ripe)
                }));
            } else {
                watch.readers.push(thread::spawn(move || read_on(messages)));
            }
        }
        watch
    }

    /// Stops all processes; says which did not end well.
    pub(super) fn stop(&mut self) -> Vec<String> {
        let first = [&mut self.api, &mut self.engine].into_iter();
        let all = first.chain(&mut self.workers);
        all.filter_map(Process::stop).collect()
    }
}

/// Reads a worker's marks, so that it never waits for the launcher.
fn read_on(mut messages: UnixStream) {
    while let Ok(Some(_)) = protocol::receive::<Status>(&mut messages) {}
}

/// The threads that read what the workers say; they end with the workers.
#[derive(Debug, Default)]
pub(super) struct WorkerWatch {
    readers: Vec<JoinHandle<()>>,
    killer: Option<JoinHandle<io::Result<Option<Killed>>>>,
}

impl WorkerWatch {
    /// Waits for the threads; tells who was killed, and takes that worker's end out of the troubles.
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
            Ok(Ok(None)) | Err(_) => "the run was over first".to_owned(),
        };
        troubles.push(format!("no worker was killed: {why}"));
        None
    }
}
