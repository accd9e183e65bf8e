//! Kernels: binaries, which contain every kernel that a program requests by name, the handles of kernels, and the stubs of the rt level.

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
    /// True for `sim_add_one`, the only kernel that really computes.
    pub(crate) adds_one: bool,
    bounds: Bounds,
    seed: u64,
    /// Number of runs of all kernels with this name.
    runs: Arc<AtomicU64>,
}

impl Function {
    /// Draws the duration of the next run in ns.
    pub(crate) fn draw_ns(&self) -> u64 {
        let count = self.runs.fetch_add(1, Ordering::Relaxed);
        self.bounds.draw_ns(self.seed, count)
    }
}

/// The binaries and kernels of the process.
pub(crate) struct Kernels {
    pub(crate) binaries: Handles<Binary>,
    pub(crate) functions: Handles<Function>,
    /// Number of runs by name.
    runs: Mutex<HashMap<String, Arc<AtomicU64>>>,
    /// The kernels of the rt level's stubs.
    stubs: Mutex<HashMap<usize, Arc<Function>>>,
    /// The binary for kernels that are known only by name.
    named: Mutex<Option<Arc<Binary>>>,
}

impl Kernels {
    /// Creates the tables. `kinds` are the handle kinds of binaries and kernels.
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

    /// Returns the kernel with this name in a binary, the same one each time.
    pub(crate) fn by_name(&self, binary: &Binary, name: &str) -> Arc<Function> {
        let mut functions = lock(&binary.functions);
        let existing = functions.get(name).cloned();
        existing.unwrap_or_else(|| {
            let function = self.add(name);
            functions.insert(name.to_owned(), Arc::clone(&function));
            function
        })
    }

    fn add(&self, name: &str) -> Arc<Function> {
        let (bounds, seed) = config().durations.bounds(name);
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

    /// Returns a kernel that is known only by its name, such as an AI CPU kernel.
    pub(crate) fn named(&self, name: &str) -> Arc<Function> {
        let binary = Arc::clone(lock(&self.named).get_or_insert_with(|| self.load()));
        self.by_name(&binary, name)
    }
}
