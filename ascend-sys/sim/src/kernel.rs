//! Kernels: binaries that hold any kernel that is asked for by name, the handles of kernels, and the stubs of the rt level.

use crate::Outcome;
use crate::config::Bounds;
use crate::device::lock;
use crate::effect::Kind;
use crate::handle::Handle;
use crate::runtime::runtime;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A loaded binary.
pub(crate) struct Binary {
    pub(crate) handle: Handle,
    functions: Mutex<HashMap<String, Arc<Function>>>,
}

/// A kernel.
pub(crate) struct Function {
    pub(crate) handle: Handle,
    pub(crate) name: String,
    /// What it really does, if it is one of the simulator's own.
    pub(crate) effect: Option<Kind>,
    bounds: Bounds,
    seed: u64,
    /// Of all kernels of this name, however often the program asked for one.
    runs: Arc<AtomicU64>,
}

/// How often the kernels of each name ran.
#[derive(Default)]
pub(crate) struct Runs(Mutex<HashMap<String, Arc<AtomicU64>>>);

/// Which stub of the rt level stands for which kernel.
#[derive(Default)]
pub(crate) struct Stubs(Mutex<HashMap<usize, Arc<Function>>>);

impl Binary {
    pub(crate) fn load() -> Arc<Self> {
        runtime().binaries.add(|handle| {
            Arc::new(Self {
                handle,
                functions: Mutex::default(),
            })
        })
    }

    pub(crate) fn by_handle(binary: aclrtBinHandle) -> Outcome<Arc<Self>> {
        let found = runtime().binaries.get(Handle::of(binary));
        found.ok_or(ACL_ERROR_RT_INVALID_HANDLE)
    }

    /// The kernel of this name: the same one each time.
    pub(crate) fn function(&self, name: &str) -> Arc<Function> {
        let mut functions = lock(&self.functions);
        let known = functions.get(name).cloned();
        known.unwrap_or_else(|| {
            let function = Function::new(name);
            functions.insert(name.to_owned(), Arc::clone(&function));
            function
        })
    }

    /// The kernel of a tiling key, whose name nobody gave.
    pub(crate) fn by_entry(&self, entry: u64) -> Arc<Function> {
        self.function(&format!("sim_kernel_{entry}"))
    }

    pub(crate) fn unload(&self) -> Outcome {
        let gone = runtime().binaries.remove(self.handle);
        gone.ok_or(ACL_ERROR_RT_INVALID_HANDLE)?;
        for (_, function) in lock(&self.functions).drain() {
            runtime().functions.remove(function.handle);
        }
        Ok(())
    }
}

impl Function {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        let (bounds, seed) = runtime().config.durations.of(name);
        let runs = Arc::clone(lock(&runtime().runs.0).entry(name.to_owned()).or_default());
        runtime().functions.add(|handle| {
            Arc::new(Self {
                handle,
                name: name.to_owned(),
                effect: Kind::of(name),
                bounds,
                seed,
                runs,
            })
        })
    }

    pub(crate) fn by_handle(func: aclrtFuncHandle) -> Outcome<Arc<Self>> {
        let found = runtime().functions.get(Handle::of(func));
        found.ok_or(ACL_ERROR_RT_INVALID_HANDLE)
    }

    /// How long the next run takes.
    pub(crate) fn draw_ns(&self) -> u64 {
        let count = self.runs.fetch_add(1, Ordering::Relaxed);
        self.bounds.draw_ns(self.seed, count)
    }
}

impl Stubs {
    pub(crate) fn register(&self, stub: usize, name: &str) {
        lock(&self.0).insert(stub, Function::new(name));
    }

    pub(crate) fn get(&self, stub: usize) -> Outcome<Arc<Function>> {
        let found = lock(&self.0).get(&stub).cloned();
        found.ok_or(507_027) // the vendor's "kernel lookup error"
    }

    /// A kernel that goes by its name alone, such as one of the AI CPU.
    pub(crate) fn named(&self, name: &str) -> Arc<Function> {
        static NAMED: Mutex<Option<Arc<Binary>>> = Mutex::new(None);
        let binary = Arc::clone(lock(&NAMED).get_or_insert_with(Binary::load));
        binary.function(name)
    }
}
