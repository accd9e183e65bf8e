//! The real effects of tasks on memory: copies, and the simulator's own kernels. Tests compare a program's results with and without a profiler by them.

use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use std::ffi::c_void;

/// The simulator's own kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `sim_add_one(int32_t *values, uint64_t count)`
    AddOne,
    /// `sim_copy(void *dst, const void *src, uint64_t bytes)`
    Copy,
}

/// One thing to do to memory. Addresses are the program's, which keeps them valid until the task has run, as with the vendor's runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
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
    /// The kernel's arguments are in device memory, and are read when it runs.
    Deferred {
        kind: Kind,
        args: usize,
    },
}

impl Kind {
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "sim_add_one" => Some(Self::AddOne),
            "sim_copy" => Some(Self::Copy),
            _ => None,
        }
    }

    /// Returns the number of its arguments, each of 8 bytes.
    pub(crate) fn arguments(self) -> usize {
        match self {
            Self::AddOne => 2,
            Self::Copy => 3,
        }
    }

    /// The effect with these arguments.
    pub(crate) fn with(self, args: &[u64]) -> Outcome<Effect> {
        let sized = |index: usize| {
            let value = args.get(index).ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
            usize::try_from(*value).map_err(|_| ACL_ERROR_RT_PARAM_INVALID)
        };
        Ok(match self {
            Self::AddOne => Effect::AddOne {
                values: sized(0)?,
                count: sized(1)?,
            },
            Self::Copy => Effect::Copy {
                dst: sized(0)?,
                src: sized(1)?,
                bytes: sized(2)?,
            },
        })
    }

    /// Reads the arguments at an address.
    pub(crate) fn read(self, args: usize) -> Outcome<Effect> {
        fail_if(args == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        let at = |index: usize| word(args + index * size_of::<u64>());
        let args: Vec<u64> = (0..self.arguments()).map(at).collect();
        self.with(&args)
    }
}

/// Reads an argument of a kernel.
pub(crate) fn word(address: usize) -> u64 {
    let place: *const u64 = std::ptr::with_exposed_provenance(address);
    // SAFETY: who launches a kernel hands in all its arguments.
    unsafe { place.read_unaligned() }
}

fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

impl Effect {
    /// Returns how many bytes of memory it writes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::AddOne { count, .. } => count * size_of::<i32>(),
            Self::Copy { bytes, .. } | Self::Set { bytes, .. } => bytes,
            Self::Write { .. } => size_of::<u64>(),
            Self::Deferred { .. } => 0,
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
            Self::Deferred { kind, args } => {
                if let Ok(effect) = kind.read(args) {
                    effect.apply();
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulators_kernels_do_what_they_say() {
        let mut values = [1_i32, -1, i32::MAX];
        let args = [values.as_mut_ptr().expose_provenance() as u64, 3];
        let kind = Kind::of("sim_add_one").unwrap();
        kind.with(&args).unwrap().apply();
        let place = args.as_ptr().expose_provenance();
        Effect::Deferred { kind, args: place }.apply();
        assert_eq!(values, [3, 1, i32::MIN + 1]);
        let mut copied = [0_i32; 3];
        let copy = Kind::of("sim_copy").unwrap();
        let args = [
            copied.as_mut_ptr().expose_provenance() as u64,
            values.as_ptr().expose_provenance() as u64,
            12,
        ];
        copy.with(&args).unwrap().apply();
        assert_eq!(copied, values);
    }

    #[test]
    fn arguments_that_are_missing_are_an_error() {
        assert!(Kind::Copy.with(&[1, 2]).is_err());
        assert!(Kind::AddOne.read(0).is_err());
        assert_eq!(Kind::of("matmul"), None);
    }
}
