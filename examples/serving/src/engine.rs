//! The engine core: a loop that schedules a step, sends it to every worker, waits for all of them and publishes the new tokens.
//!
//! The workers are tensor-parallel: each executes every step on its part of the model, and has its part of every request's keys and
//! values. When a worker dies, all running requests lose a part of their cache and fail. The waiting requests have no cache yet, and the
//! remaining workers serve them.

mod fleet;
mod inbox;
mod kv;
mod request;
mod scheduler;

use std::collections::BTreeMap;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::{io, thread};

use sa_recorder::{Args, Recorder, counter, instant, span};
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::protocol::{
    self, Batch, Hello, NewRequest, Output, OutputEvent, Status, Step, StepOutput, ToEngine, Token,
    step_flows,
};
use fleet::Fleet;
use inbox::Event;
use scheduler::{Limits, Scheduler};

/// Settings of the engine core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineOptions {
    pub(crate) workers: usize,
    /// Number of blocks in the cache for keys and values.
    pub(crate) kv_blocks: usize,
    /// Maximum number of requests in a batch.
    pub(crate) max_batch: usize,
}

/// Number of tokens in a block of the cache.
const BLOCK_TOKENS: usize = 4;
/// Maximum number of prompt tokens in a step, unless a single prompt is longer.
const PREFILL_TOKENS: usize = 48;

/// Listens on `socket`, reports to the launcher that it is ready, and serves until the launcher stops it.
///
/// # Errors
///
/// If the socket cannot be bound or a thread cannot be started.
pub(crate) fn serve(socket: &Path, options: &EngineOptions, control: &Control) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    let (events, inbox) = mpsc::channel();
    let stop = events.clone();
    control.on_stop(move || {
        let _ = stop.send(Event::Stop);
    })?;
    let connections = options.workers + 1;
    thread::Builder::new()
        .name("accept".into())
        .spawn(move || inbox::accept(&listener, connections, &events))?;
    let recorder = Recorder::get();
    recorder.set_thread_name("scheduler");
    recorder.set_engine_settings(&settings(options));
    control.report(Status::Ready { port: None });
    Core::new(options, inbox).run();
    Ok(())
}

/// Returns the settings of the engine for the trace.
fn settings(options: &EngineOptions) -> Args {
    Args::new()
        .with("engine", "serving-demo")
        .with("engine_version", env!("CARGO_PKG_VERSION"))
        .with("tensor_parallel_size", options.workers)
        .with("api_server_count", 1)
        .with("max_num_seqs", options.max_batch)
        .with("max_num_batched_tokens", PREFILL_TOKENS)
        .with("num_kv_blocks", options.kv_blocks)
        .with("kv_block_size", BLOCK_TOKENS)
}

/// The state of the loop.
#[derive(Debug)]
struct Core {
    inbox: Receiver<Event>,
    scheduler: Scheduler,
    fleet: Fleet,
    api: Option<UnixStream>,
    step: u64,
    outputs: BTreeMap<usize, StepOutput>,
    /// Workers that have died and whose requests have not been failed yet.
    lost: Vec<usize>,
    stopping: bool,
}

impl Core {
    fn new(options: &EngineOptions, inbox: Receiver<Event>) -> Core {
        let limits = Limits {
            max_batch: options.max_batch,
            prefill_tokens: PREFILL_TOKENS,
        };
        Core {
            inbox,
            scheduler: Scheduler::new(limits, options.kv_blocks, BLOCK_TOKENS),
            fleet: Fleet::new(options.workers),
            api: None,
            step: 0,
            outputs: BTreeMap::new(),
            lost: Vec::new(),
            stopping: false,
        }
    }

    fn run(&mut self) {
        while !self.stopping {
            self.handle_events();
            self.fail_lost();
            if self.stopping || self.is_idle() {
                continue;
            }
            let batch = self.schedule();
            if !batch.is_empty() {
                self.queue_step(&batch);
                self.wait();
                self.process(&batch);
            }
        }
        let failed = self.scheduler.fail_all("the server is shutting down");
        self.publish(failed);
    }

    /// Returns true if there are no requests, or if workers are still missing.
    fn is_idle(&self) -> bool {
        self.scheduler.is_idle() || !self.fleet.is_complete()
    }

    /// Handles the events that have arrived. If the engine is idle, waits for one first.
    fn handle_events(&mut self) {
        if self.is_idle() && self.lost.is_empty() {
            self.wait_for_event();
        }
        while let Ok(event) = self.inbox.try_recv() {
            self.handle(event);
        }
    }

    fn wait_for_event(&mut self) {
        match self.inbox.recv() {
            Ok(event) => self.handle(event),
            Err(_) => self.stopping = true,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Joined(Hello::Api, stream) => self.api = Some(stream),
            Event::Joined(Hello::Worker(index), stream) => self.fleet.join(index, stream),
            Event::Api(ToEngine::Add(request)) => self.add(request),
            Event::Api(ToEngine::Abort { request_id }) => self.scheduler.abort(&request_id),
            Event::ApiGone => self.scheduler.abort_all(),
            Event::Output(worker, output) if output.step == self.step => {
                self.outputs.insert(worker, output);
            }
            Event::Output(..) => {}
            Event::WorkerGone(worker) => {
                self.fleet.remove(worker);
                self.lost.push(worker);
            }
            Event::Stop => self.stopping = true,
        }
    }

    fn add(&mut self, request: NewRequest) {
        let request_id = request.request_id.clone();
        let refusal = match self.fleet.is_empty() {
            true => Some("no worker is left".to_owned()),
            false => self.scheduler.add(request).err(),
        };
        if let Some(reason) = refusal {
            let event = OutputEvent::Failed(reason);
            self.publish(vec![Output { request_id, event }]);
        }
        self.count();
    }

    fn schedule(&mut self) -> Batch {
        let mut span = span!("scheduler", "scheduler.schedule");
        let batch = self.scheduler.schedule();
        span.arg("prefill", batch.prefill.len());
        span.arg("decode", batch.decode.len());
        self.count();
        batch
    }

    fn queue_step(&mut self, batch: &Batch) {
        self.step += 1;
        self.outputs.clear();
        let _span = span!(
            "scheduler",
            "scheduler.queue_worker_step",
            scheduled = batch.sequences().count(),
            step = self.step,
            workers = self.fleet.len()
        );
        step_flows(batch.sequences());
        self.fleet.send(|rank, world| Step {
            step: self.step,
            rank,
            world,
            batch: batch.clone(),
        });
    }

    /// Waits until every living worker has sent its output. Queues requests that arrive in the meantime.
    fn wait(&mut self) {
        let _span = span!(
            "scheduler",
            "scheduler.wait_worker_output",
            step = self.step
        );
        while !self.stopping && !self.fleet.all(|worker| self.outputs.contains_key(&worker)) {
            self.wait_for_event();
        }
    }

    fn process(&mut self, batch: &Batch) {
        if self.stopping || !self.lost.is_empty() {
            return self.fail_lost();
        }
        let samples = self.next_tokens();
        let mut span = span!(
            "scheduler",
            "scheduler.process_step_output",
            step = self.step
        );
        span.arg("new_tokens", samples.len());
        step_flows(batch.sequences());
        let outputs = self.scheduler.apply(&samples);
        self.publish(outputs);
        self.count();
    }

    /// Returns the next token of each request. All workers choose the same tokens.
    fn next_tokens(&self) -> BTreeMap<String, Token> {
        let output = self.outputs.values().next();
        let samples = output.into_iter().flat_map(|output| &output.samples);
        let tokens = samples.map(|sample| (sample.request_id.clone(), sample.token));
        tokens.collect()
    }

    /// Fails the requests that lost their cache because a worker died.
    fn fail_lost(&mut self) {
        for worker in std::mem::take(&mut self.lost) {
            instant!(
                "scheduler",
                "worker.lost",
                worker = worker,
                step = self.step
            );
            let reason = format!("worker-{worker} died");
            let mut failed = self.scheduler.fail_running(&reason);
            if self.fleet.is_empty() {
                let reason = format!("{reason} and no worker is left");
                failed.extend(self.scheduler.fail_all(&reason));
            }
            self.publish(failed);
            self.count();
        }
    }

    fn publish(&mut self, outputs: Vec<Output>) {
        if outputs.is_empty() {
            return;
        }
        // The reader of the connection also notices if it is broken, and reports it.
        let _ = self.api.as_mut().map(|api| protocol::send(api, &outputs));
    }

    fn count(&self) {
        let pool = self.scheduler.pool();
        counter!(
            "requests",
            running = self.scheduler.running(),
            waiting = self.scheduler.waiting()
        );
        counter!("kv_blocks", used = pool.used(), free = pool.free());
    }
}
