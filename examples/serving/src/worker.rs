//! A worker: executes every step on its part of the model and answers with its best token for each request.

mod model;
mod weights;

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use sa_recorder::{FlowId, FlowPhase, Recorder, flow, span};

use crate::completion::MODEL;
use crate::control::Control;
use crate::protocol::{self, Hello, Sample, Sequence, Status, Step, StepOutput};
use model::Model;
use weights::Shard;

/// Loads the model, joins the engine core, and executes steps until the connection ends.
///
/// # Errors
///
/// If the engine core cannot be reached or the connection breaks inside a message.
pub(crate) fn serve(
    engine: &Path,
    index: usize,
    world: usize,
    seed: u64,
    control: &Control,
) -> io::Result<()> {
    let mut engine = UnixStream::connect(engine)?;
    let connection = engine.try_clone()?;
    control.on_stop(move || {
        let _ = connection.shutdown(Shutdown::Both);
    })?;
    Recorder::get().set_thread_name("device");
    let mut worker = Worker {
        index,
        seed,
        model: load(index, seed, Shard { rank: index, world }),
    };
    protocol::send(&mut engine, &Hello::Worker(index))?;
    control.tell(Status::Ready { port: None });
    while let Some(step) = protocol::receive::<Step>(&mut engine)? {
        let output = worker.execute(&step, control);
        if protocol::send(&mut engine, &output).is_err() {
            break; // The engine core went first; so the run is over.
        }
    }
    Ok(())
}

fn load(device: usize, seed: u64, shard: Shard) -> Model {
    let _span = span!(
        "worker",
        "WorkerProcess.init_device_and_model",
        model_id = MODEL,
        device_id = device,
        rank = shard.rank,
        world = shard.world
    );
    Model::new(seed, shard)
}

/// The state between steps.
#[derive(Debug)]
struct Worker {
    index: usize,
    seed: u64,
    model: Model,
}

impl Worker {
    fn execute(&mut self, step: &Step, control: &Control) -> StepOutput {
        let _span = span!(
            "worker",
            "WorkerProcess.execute_step",
            prefill = step.batch.prefill.len(),
            decode = step.batch.decode.len(),
            step = step.step
        );
        control.tell(Status::StepStarted(step.step));
        let shard = Shard {
            rank: step.rank,
            world: step.world,
        };
        if self.model.shard() != shard {
            // A worker is gone: its part of the weights is shared out anew, and every cache with it.
            self.model = load(self.index, self.seed, shard);
        }
        step.batch
            .release
            .iter()
            .for_each(|request| self.model.release(request));
        let mut samples = self.batch_prefill(&step.batch.prefill);
        samples.extend(self.batch_decode(&step.batch.decode));
        control.tell(Status::StepFinished(step.step));
        StepOutput {
            step: step.step,
            samples,
        }
    }

    fn batch_prefill(&mut self, sequences: &[Sequence]) -> Vec<Sample> {
        if sequences.is_empty() {
            return Vec::new();
        }
        let ids = request_ids(sequences);
        let _span = span!(
            "worker",
            "WorkerProcess.batch_prefill",
            batch_size = sequences.len(),
            request_ids = ids
        );
        step_flows(sequences);
        let _run = span!(
            "executor",
            "PyptoExecutor.run_prefill",
            model_id = MODEL,
            batch_size = sequences.len()
        );
        self.model.run(sequences)
    }

    fn batch_decode(&mut self, sequences: &[Sequence]) -> Vec<Sample> {
        if sequences.is_empty() {
            return Vec::new();
        }
        let ids = request_ids(sequences);
        let _span = span!(
            "worker",
            "WorkerProcess.batch_decode",
            batch_size = sequences.len(),
            request_ids = ids
        );
        step_flows(sequences);
        let _run = span!(
            "executor",
            "PyptoExecutor.run_decode",
            model_id = MODEL,
            batch_size = sequences.len()
        );
        self.model.run(sequences)
    }
}

fn request_ids(sequences: &[Sequence]) -> Vec<&str> {
    sequences
        .iter()
        .map(|sequence| sequence.request_id.as_str())
        .collect()
}

/// Leads the flow of each request through the span that is open here.
fn step_flows(sequences: &[Sequence]) {
    for sequence in sequences {
        flow(
            FlowPhase::Step,
            "flow",
            "request",
            FlowId::Global(sequence.flow),
        );
    }
}
