//! A worker: executes every step on its part of the model and answers with the next token for each request.

pub(crate) mod device;
mod model;
pub(crate) mod npu;

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;

use sa_recorder::{Level, Recorder, span};
use serde::{Deserialize, Serialize};

use crate::completion::MODEL;
use crate::control::Control;
use crate::protocol::{self, Hello, Sample, Sequence, Status, Step, StepOutput, step_flows};
use device::Device;
use model::{Model, Shard};
use npu::Npu;

/// The names of the spans of a batch and of its run.
const PREFILL: [&str; 2] = ["WorkerProcess.batch_prefill", "PyptoExecutor.run_prefill"];
const DECODE: [&str; 2] = ["WorkerProcess.batch_decode", "PyptoExecutor.run_decode"];

/// Opens a span, unless the worker records nothing itself.
macro_rules! recorded {
    ($recorded:expr, $($span:tt)*) => {
        $recorded.then(|| span!($($span)*))
    };
}

/// What a worker is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) world: usize,
    pub(crate) seed: u64,
    /// Launch kernels on a simulated NPU.
    pub(crate) npu: bool,
    /// Record spans. A worker that does not is recorded by an interposer alone, as one that nobody can change.
    pub(crate) recorded: bool,
}

/// Loads the model, joins the engine core, and executes steps until the connection ends.
///
/// # Errors
///
/// If the engine core cannot be reached, the connection breaks inside a message, or the device fails.
pub(crate) fn serve(engine: &Path, place: Place, control: &Control) -> io::Result<()> {
    let Place { index, world, .. } = place;
    let mut engine = UnixStream::connect(engine)?;
    let connection = engine.try_clone()?;
    control.on_stop(move || {
        let _ = connection.shutdown(Shutdown::Both);
    })?;
    if place.recorded {
        Recorder::get().set_thread_name("device");
    }
    let device = Rc::new(open(place)?);
    let shard = Shard { rank: index, world };
    let mut worker = Worker {
        place,
        model: load(place, shard, &device),
        device,
    };
    protocol::send(&mut engine, &Hello::Worker(index))?;
    control.tell(Status::Ready { port: None });
    while let Some(step) = protocol::receive::<Step>(&mut engine)? {
        let output = worker.execute(&step, control)?;
        if protocol::send(&mut engine, &output).is_err() {
            break; // The engine core went first; so the run is over.
        }
    }
    Ok(())
}

fn open(place: Place) -> io::Result<Device> {
    let npu = place.npu.then(|| Npu::open(place.index, place.recorded));
    Ok(Device::new(npu.transpose()?, place.recorded))
}

fn load(place: Place, shard: Shard, device: &Rc<Device>) -> Model {
    let _span = recorded!(
        place.recorded,
        "worker",
        "WorkerProcess.init_device_and_model",
        model_id = MODEL,
        device_id = place.index,
        rank = shard.rank,
        world = shard.world
    );
    Model::new(place.seed, shard, device.clone())
}

/// The state between steps.
#[derive(Debug)]
struct Worker {
    place: Place,
    model: Model,
    device: Rc<Device>,
}

impl Worker {
    fn execute(&mut self, step: &Step, control: &Control) -> io::Result<StepOutput> {
        let _span = recorded!(
            self.place.recorded,
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
            // A worker is gone: its part of the model is shared out anew, and every cache with it.
            self.model = load(self.place, shard, &self.device);
        }
        for request in &step.batch.release {
            self.model.release(request);
        }
        let mut samples = self.run_batch(PREFILL, &step.batch.prefill)?;
        samples.extend(self.run_batch(DECODE, &step.batch.decode)?);
        control.tell(Status::StepFinished(step.step));
        Ok(StepOutput {
            step: step.step,
            samples,
        })
    }

    /// Runs the sequences of one kind, in spans of that kind's names.
    fn run_batch(
        &mut self,
        [batch, run]: [&str; 2],
        sequences: &[Sequence],
    ) -> io::Result<Vec<Sample>> {
        if sequences.is_empty() {
            return Ok(Vec::new());
        }
        let _spans = self.place.recorded.then(|| {
            let ids = sequences
                .iter()
                .map(|sequence| sequence.request_id.as_str());
            let mut span = Recorder::get().span(Level::E2e, "worker", batch);
            span.arg("batch_size", sequences.len());
            span.arg("request_ids", ids.collect::<Vec<_>>());
            step_flows(sequences.iter());
            let mut inner = Recorder::get().span(Level::E2e, "executor", run);
            inner.arg("model_id", MODEL);
            inner.arg("batch_size", sequences.len());
            (inner, span) // Dropped in this order.
        });
        self.model.run(sequences)
    }
}
