//! Kernels: binaries that hold any kernel that is asked for by name, the handles of kernels, and the stubs of the rt level.

use crate::Outcome;
use crate::config::{Bounds, config};
use crate::handle::{Handle, Handles};
use crate::wait::lock;
use ascend_sys::codes::*;
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
    /// True for `sim_add_one`, the only one that really computes.
    pub(crate) adds_one: bool,
    bounds: Bounds,
    seed: u64,
    /// Number of runs of all kernels with this name, however often the program asked for one.
    runs: Arc<AtomicU64>,
}

impl Function {
    /// Draws how long the next run takes.
    pub(crate) fn draw_ns(&self) -> u64 {
        let count = self.runs.fetch_add(1, Ordering::Relaxed);
        self.bounds.draw_ns(self.seed, count)
    }
}

/// The binaries and kernels of the process, by id.
pub(crate) struct Kernels {
    pub(crate) binaries: Handles<Binary>,
    pub(crate) functions: Handles<Function>,
    /// Number of runs of each name.
    runs: Mutex<HashMap<String, Arc<AtomicU64>>>,
    /// The kernel of each stub of the rt level.
    stubs: Mutex<HashMap<usize, Arc<Function>>>,
    /// Holds the kernels that have no binary.
    named: Mutex<Option<Arc<Binary>>>,
}

impl Kernels {
    /// Makes the tables. `kinds` are the kinds of the handles of binaries and kernels.
    pub(crate) fn new(kinds: (usize, usize)) -> Self {
        Self {
            binaries: Handles::new(kinds.0, ACL_ERROR_RT_INVALID_HANDLE),
            functions: Handles::new(kinds.1, ACL_ERROR_RT_INVALID_HANDLE),
            runs: Mutex::default(),
            stubs: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Loads a binary.
    pub(crate) fn load(&self) -> Arc<Binary> {
        self.binaries.add(|handle| Binary {
            handle,
            functions: Mutex::default(),
        })
    }

    /// Returns the kernel of this name in a binary: the same one each time.
    pub(crate) fn by_name(&self, binary: &Binary, name: &str) -> Arc<Function> {
        let mut functions = lock(&binary.functions);
        let known = functions.get(name).cloned();
        known.unwrap_or_else(|| {
            let function = self.add(name);
            functions.insert(name.to_owned(), Arc::clone(&function));
            function
        })
    }

    fn add(&self, name: &str) -> Arc<Function> {
        let (bounds, seed) = config().durations.of(name);
        let runs = Arc::clone(lock(&self.runs).entry(name.to_owned()).or_default());
        self.functions.add(|handle| Function {
            handle,
            name: name.to_owned(),
            adds_one: name == "sim_add_one",
            bounds,
            seed,
            runs,
        })
    }

    pub(crate) fn register_stub(&self, stub: usize, name: &str) {
        lock(&self.stubs).insert(stub, self.add(name));
    }

    pub(crate) fn by_stub(&self, stub: usize) -> Outcome<Arc<Function>> {
        let found = lock(&self.stubs).get(&stub).cloned();
        found.ok_or(507_027) // the vendor's "kernel lookup error"
    }

    /// Returns a kernel that is known by its name alone, such as one of the AI CPU.
    pub(crate) fn named(&self, name: &str) -> Arc<Function> {
        let binary = Arc::clone(lock(&self.named).get_or_insert_with(|| self.load()));
        self.by_name(&binary, name)
    }
}
