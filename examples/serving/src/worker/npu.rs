//! The simulated NPU on which a worker launches its kernels, which take their configured time and compute nothing.
//!
//! A worker that times its launches calls the runtime directly. A worker that does not time them finds the runtime's functions like torch_npu: a preloaded library's
//! functions come first.
#![expect(unsafe_code, reason = "calls the runtime's functions")]

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::io;
use std::ptr::{null, null_mut};
use std::time::Duration;

use ascend_sys::types::{aclrtFuncHandle, aclrtStream};
use ascend_sys::{Acl, Library, MissingSymbol, codes};
use serving_shim::Launch;

/// The kernels of the model, with their minimum and maximum durations in microseconds.
pub(crate) const KERNELS: [(&str, u32, u32); 6] = [
    ("qkv_proj", 60, 90),
    ("paged_attention", 40, 120),
    ("o_proj", 25, 40),
    ("mlp_up", 80, 110),
    ("mlp_down", 80, 110),
    ("lm_head", 120, 160),
];
/// Maximum time to wait for the last slices.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// An NPU with one stream.
pub(crate) struct Npu {
    acl: Acl,
    global: Acl,
    device: i32,
    stream: aclrtStream,
    functions: HashMap<&'static str, aclrtFuncHandle>,
    /// True if this worker times its launches.
    timed: bool,
}

impl fmt::Debug for Npu {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Npu")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Npu {
    /// Opens the simulated device `index`.
    ///
    /// # Errors
    ///
    /// If the simulator is missing or returns an error.
    pub(crate) fn open(index: usize, timed: bool) -> io::Result<Npu> {
        let library = Library::open_simulator().map_err(io::Error::other)?;
        let mut npu = Npu {
            acl: Acl::load(&library),
            global: Acl::load(&Library::process()),
            device: i32::try_from(index).unwrap_or(0),
            stream: null_mut(),
            functions: HashMap::new(),
            timed,
        };
        npu.prepare()?;
        Ok(npu)
    }

    fn prepare(&mut self) -> io::Result<()> {
        let init = require(self.acl.init.aclInit)?;
        // SAFETY: a null path means no configuration.
        check("aclInit", unsafe { init(null()) })?;
        let set = self.function(|acl| acl.lifecycle.aclrtSetDevice)?;
        // SAFETY: the argument is an integer.
        check("aclrtSetDevice", unsafe { set(self.device) })?;
        let create = require(self.acl.stream.aclrtCreateStream)?;
        // SAFETY: the stream is writable during the call.
        check("aclrtCreateStream", unsafe { create(&raw mut self.stream) })?;
        let load = require(self.acl.kernel.aclrtBinaryLoadFromData)?;
        let (mut binary, code) = (null_mut(), [0u8; 8]);
        // SAFETY: `code` is readable for its length, `binary` is writable during the call, and there are no options.
        check("aclrtBinaryLoadFromData", unsafe {
            load(
                code.as_ptr().cast::<c_void>(),
                code.len(),
                null(),
                &raw mut binary,
            )
        })?;
        let find = self.function(|acl| acl.naming.aclrtBinaryGetFunction)?;
        for (name, _, _) in KERNELS {
            let text = CString::new(name).map_err(io::Error::other)?;
            let mut function = null_mut();
            // SAFETY: `text` is a C string, and `function` is writable during the call.
            check("aclrtBinaryGetFunction", unsafe {
                find(binary, text.as_ptr(), &raw mut function)
            })?;
            self.functions.insert(name, function);
        }
        Ok(())
    }

    /// Returns a function of the runtime. A worker that does not time its launches gets the process's global one, if there is one.
    fn function<F>(&self, select: impl Fn(&Acl) -> Result<F, MissingSymbol>) -> io::Result<F> {
        let own = select(&self.acl);
        require(match self.timed {
            true => own,
            false => select(&self.global).or(own),
        })
    }

    /// Launches a kernel for a matrix product of these sizes.
    pub(crate) fn launch(&self, name: &'static str, [m, n, k]: [usize; 3]) -> io::Result<()> {
        let grid = u32::try_from(m.max(1)).unwrap_or(u32::MAX);
        let Some(function) = self.functions.get(name) else {
            return Err(io::Error::other(format!("no kernel {name}")));
        };
        let launch = self.function(|acl| acl.launch.aclrtLaunchKernel)?;
        // SAFETY: the handle and the stream are valid handles of the runtime, and there are no arguments.
        let call = || unsafe { launch(*function, grid, null(), 0, self.stream) };
        let code = if self.timed {
            let mut timed = Launch::begin(self.stream, name, grid);
            for (key, size) in [("m", m), ("n", n), ("k", k)] {
                timed.arg(key, size);
            }
            let code = call();
            timed.end(code);
            code
        } else {
            call()
        };
        check("aclrtLaunchKernel", code)
    }

    /// Waits until all launched kernels have run.
    pub(crate) fn synchronize(&self) -> io::Result<()> {
        let wait = self.function(|acl| acl.synchronize.aclrtSynchronizeStream)?;
        // SAFETY: the stream is a valid handle of the runtime.
        check("aclrtSynchronizeStream", unsafe { wait(self.stream) })
    }

    /// Waits for the last kernels and resets the device.
    fn close(&self) -> io::Result<()> {
        self.synchronize()?;
        if self.timed {
            serving_shim::flush(FLUSH_TIMEOUT);
        }
        let reset = self.function(|acl| acl.lifecycle.aclrtResetDevice)?;
        // SAFETY: the argument is an integer, and the device is not used afterwards.
        check("aclrtResetDevice", unsafe { reset(self.device) })
    }
}

impl Drop for Npu {
    fn drop(&mut self) {
        let _ = self.close(); // the process ends anyway
    }
}

fn require<F>(function: Result<F, MissingSymbol>) -> io::Result<F> {
    function.map_err(io::Error::other)
}

fn check(call: &str, code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => {
            let name = codes::name_of(code).unwrap_or("unknown code");
            Err(io::Error::other(format!("{call}: {code} ({name})")))
        }
    }
}
