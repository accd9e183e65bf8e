//! The device that runs the model's kernels: an NPU, or only the CPU. In both cases, the CPU spends time on each kernel.

use std::io;
use std::thread;
use std::time::Duration;

use sa_recorder::{Level, Recorder};

use super::npu::{KERNELS, Npu};

/// Ratio of the CPU time for a kernel to the kernel's minimum time on an NPU. It is high, so that the host is the bottleneck.
const HOST_RATIO: u32 = 5;

/// Runs kernels.
#[derive(Debug)]
pub(crate) struct Device {
    npu: Option<Npu>,
    /// True if this process records spans.
    recorded: bool,
}

impl Device {
    /// Creates a device: an NPU, or only the CPU.
    pub(crate) fn new(npu: Option<Npu>, recorded: bool) -> Device {
        Device { npu, recorded }
    }

    /// Runs a kernel for a matrix product of these sizes.
    ///
    /// # Errors
    ///
    /// If the device refuses the kernel.
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
        let found = KERNELS.iter().find(|(name, ..)| *name == kernel);
        let min_us = found.map_or(0, |(_, min_us, _)| *min_us);
        thread::sleep(Duration::from_micros(min_us.into()) * HOST_RATIO);
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
