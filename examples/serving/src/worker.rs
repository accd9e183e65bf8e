//! A worker, which executes every step on its part of the model and responds with the next token for each request.

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

/// Names of the spans of a prefill batch and of its run.
const PREFILL: [&str; 2] = ["WorkerProcess.batch_prefill", "PyptoExecutor.run_prefill"];
/// Names of the spans of a decode batch and of its run.
const DECODE: [&str; 2] = ["WorkerProcess.batch_decode", "PyptoExecutor.run_decode"];

/// Opens a span if the worker records spans.
macro_rules! recorded {
    ($recorded:expr, $($span:tt)*) => {
        $recorded.then(|| span!($($span)*))
    };
}

/// Settings of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerOptions {
    pub(crate) index: usize,
    pub(crate) world: usize,
    pub(crate) seed: u64,
    /// True if kernels are launched on a simulated NPU.
    pub(crate) npu: bool,
    /// True if the worker records spans. Otherwise only the preload library records it, as for a program that cannot be modified.
    pub(crate) recorded: bool,
}

/// Loads the model, joins the engine core, and executes steps until the connection ends.
///
/// # Errors
///
/// If the engine core cannot be reached, the connection breaks inside a message, or the device fails.
pub(crate) fn serve(engine: &Path, options: WorkerOptions, control: &Control) -> io::Result<()> {
    let WorkerOptions { index, world, .. } = options;
    let mut engine = UnixStream::connect(engine)?;
    let connection = engine.try_clone()?;
    control.on_stop(move || {
        let _ = connection.shutdown(Shutdown::Both);
    })?;
    if options.recorded {
        Recorder::get().set_thread_name("device");
    }
    let device = Rc::new(open(options)?);
    let shard = Shard { rank: index, world };
    let mut worker = Worker {
        options,
        model: load(options, shard, &device),
        device,
    };
    protocol::send(&mut engine, &Hello::Worker(index))?;
    control.report(Status::Ready { port: None });
    while let Some(step) = protocol::receive::<Step>(&mut engine)? {
        let output = worker.execute(&step, control)?;
        if protocol::send(&mut engine, &output).is_err() {
            break; // The engine core has ended, so the run is over.
        }
    }
    Ok(())
}

fn open(options: WorkerOptions) -> io::Result<Device> {
    let npu = options
        .npu
        .then(|| Npu::open(options.index, options.recorded));
    Ok(Device::new(npu.transpose()?, options.recorded))
}

fn load(options: WorkerOptions, shard: Shard, device: &Rc<Device>) -> Model {
    let _span = recorded!(
        options.recorded,
        "worker",
        "WorkerProcess.init_device_and_model",
        model_id = MODEL,
        device_id = options.index,
        rank = shard.rank,
        world = shard.world
    );
    Model::new(options.seed, shard, device.clone())
}

/// The state between steps.
#[derive(Debug)]
struct Worker {
    options: WorkerOptions,
    model: Model,
    device: Rc<Device>,
}

impl Worker {
    fn execute(&mut self, step: &Step, control: &Control) -> io::Result<StepOutput> {
        let _span = recorded!(
            self.options.recorded,
            "worker",
            "WorkerProcess.execute_step",
            prefill = step.batch.prefill.len(),
            decode = step.batch.decode.len(),
            step = step.step
        );
        control.report(Status::StepStarted(step.step));
        let shard = Shard {
            rank: step.rank,
            world: step.world,
        };
        if self.model.shard() != shard {
            // A worker has died: the model is divided again among the remaining workers, and all caches are lost.
            self.model = load(self.options, shard, &self.device);
        }
        for request in &step.batch.release {
            self.model.release(request);
        }
        let mut samples = self.run_batch(PREFILL, &step.batch.prefill)?;
        samples.extend(self.run_batch(DECODE, &step.batch.decode)?);
        control.report(Status::StepFinished(step.step));
        Ok(StepOutput {
            step: step.step,
            samples,
        })
    }

    /// Runs the prefill or the decode sequences, in spans with the given names.
    fn run_batch(
        &mut self,
        [batch, run]: [&str; 2],
        sequences: &[Sequence],
    ) -> io::Result<Vec<Sample>> {
        if sequences.is_empty() {
            return Ok(Vec::new());
        }
        let _spans = self.options.recorded.then(|| {
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
