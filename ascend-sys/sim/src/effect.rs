//! The effects of tasks on memory: copies, and the simulator's own kernel. Tests use them to compare a program's results with and without a profiler.

use std::ffi::c_void;

/// Number of bytes that a copy moves in a microsecond.
const COPY_BYTES_PER_US: u64 = 20_000;

/// An effect on memory. The addresses belong to the program, which keeps them valid until the task has run, as with the vendor's runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The kernel `sim_add_one(int32_t *values, uint64_t count)`.
    AddOne {
        values: usize,
        count: usize,
    },
    Copy {
        dst: usize,
        src: usize,
        bytes: usize,
    },
    Set {
        dst: usize,
        value: u8,
        bytes: usize,
    },
    Write {
        dst: usize,
        value: u64,
    },
    /// The kernel `sim_add_one` with arguments in device memory, which are read when it runs.
    Deferred {
        args: usize,
    },
}

/// Reads an argument of a kernel.
fn read_argument(address: usize) -> usize {
    let argument: *const usize = std::ptr::with_exposed_provenance(address);
    // SAFETY: a program that launches a kernel passes all its arguments.
    unsafe { argument.read_unaligned() }
}

fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

impl Effect {
    /// Reads the arguments of `sim_add_one` at an address.
    pub(crate) fn add_one(args: usize) -> Self {
        Self::AddOne {
            values: read_argument(args),
            count: read_argument(args + size_of::<usize>()),
        }
    }

    /// Returns the duration of a copy or a memset in ns.
    pub(crate) fn copy_ns(self) -> u64 {
        match self {
            Self::Copy { bytes, .. } | Self::Set { bytes, .. } => {
                bytes as u64 * 1000 / COPY_BYTES_PER_US
            }
            Self::AddOne { .. } | Self::Write { .. } | Self::Deferred { .. } => 0,
        }
    }

    pub(crate) fn apply(self) {
        match self {
            Self::AddOne { values, count } => add_one(pointer(values).cast(), count),
            Self::Copy { bytes: 0, .. } | Self::Set { bytes: 0, .. } => {}
            Self::Copy { dst, src, bytes } => {
                let (from, to) = (pointer(src).cast::<u8>(), pointer(dst).cast::<u8>());
                // SAFETY: the program keeps `bytes` bytes at both addresses until the task has run; they may overlap.
                unsafe { std::ptr::copy(from, to, bytes) };
            }
            Self::Set { dst, value, bytes } => {
                // SAFETY: the program keeps `bytes` bytes there until the task has run.
                unsafe { std::ptr::write_bytes(pointer(dst).cast::<u8>(), value, bytes) };
            }
            Self::Write { dst, value } => {
                // SAFETY: the program keeps the value's bytes there until the task has run.
                unsafe { pointer(dst).cast::<u64>().write_unaligned(value) };
            }
            Self::Deferred { args } => Self::add_one(args).apply(),
        }
    }
}

fn add_one(values: *mut i32, count: usize) {
    for index in 0..count {
        let value = values.wrapping_add(index);
        // SAFETY: the program keeps `count` values there until the kernel has run.
        let old = unsafe { value.read_unaligned() };
        // SAFETY: as above.
        unsafe { value.write_unaligned(old.wrapping_add(1)) };
    }
}
