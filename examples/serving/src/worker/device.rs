//! The device that runs the model's kernels: an NPU, or the processor alone. Either way, the processor spends time on each kernel.

use std::io;
use std::thread;
use std::time::Duration;

use sa_recorder::{Level, Recorder};

use super::npu::{KERNELS, Npu};

/// Time that the processor takes for a kernel, as a multiple of the least time of the kernel on an NPU. It is long, so that the host slows the server down.
const HOST_TIMES: u32 = 5;

/// Runs kernels.
#[derive(Debug)]
pub(crate) struct Device {
    npu: Option<Npu>,
    /// Whether this process records anything itself.
    recorded: bool,
}

impl Device {
    /// Makes a device: the NPU, or none but the processor.
    pub(crate) fn new(npu: Option<Npu>, recorded: bool) -> Device {
        Device { npu, recorded }
    }

    /// Runs a kernel for a product of these sizes.
    ///
    /// # Errors
    ///
    /// If the device refuses it.
    pub(crate) fn run(&self, kernel: &'static str, sizes: [usize; 3]) -> io::Result<()> {
        if let Some(npu) = &self.npu {
            npu.launch(kernel, sizes)?;
        }
        let open = || Recorder::get().span(Level::Kernel, "kernel", kernel);
        let mut span = (self.recorded && self.npu.is_none()).then(open);
        if let Some(span) = &mut span {
            for (key, size) in ["m", "n", "k"].into_iter().zip(sizes) {
                span.arg(key, size);
            }
        }
        let known = KERNELS.iter().find(|(name, ..)| *name == kernel);
        let least_us = known.map_or(0, |(_, least_us, _)| *least_us);
        thread::sleep(Duration::from_micros(least_us.into()) * HOST_TIMES);
        Ok(())
    }

    /// Waits until all kernels have run.
    ///
    /// # Errors
    ///
    /// If one of them failed.
    pub(crate) fn synchronize(&self) -> io::Result<()> {
        self.npu.as_ref().map_or(Ok(()), Npu::synchronize)
    }
}
