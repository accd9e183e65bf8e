//! Where the model's kernels run: launched on an NPU, while the processor computes what they stand for; or on the processor alone.

use std::io;

use sa_recorder::{Level, Recorder};

use super::npu::Npu;
use crate::kernels::Matrix;

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

    /// Runs a kernel of these sizes.
    ///
    /// # Errors
    ///
    /// If the device refuses it.
    pub(crate) fn run<T>(
        &self,
        kernel: &'static str,
        sizes: [usize; 3],
        compute: impl FnOnce() -> T,
    ) -> io::Result<T> {
        if let Some(npu) = &self.npu {
            npu.launch(kernel, sizes)?;
            return Ok(compute());
        }
        let open = || Recorder::get().span(Level::Kernel, "kernel", kernel);
        let mut span = self.recorded.then(open);
        for (key, size) in ["m", "n", "k"].into_iter().zip(sizes) {
            if let Some(span) = &mut span {
                span.arg(key, size);
            }
        }
        Ok(compute())
    }

    /// Runs a matrix product.
    ///
    /// # Errors
    ///
    /// If the device refuses it.
    pub(crate) fn multiply(
        &self,
        kernel: &'static str,
        left: &Matrix,
        right: &Matrix,
    ) -> io::Result<Matrix> {
        let sizes = [left.rows, right.cols, left.cols];
        self.run(kernel, sizes, || left.multiply(right))
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
