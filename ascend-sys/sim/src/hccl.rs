//! Collectives, which are tasks of a stream. Ranks do not wait for each other: each rank's collective takes a fixed time and has only the effects that one rank
//! can have alone.

use crate::Outcome;
use crate::device::Device;
use crate::effect::Effect;
use crate::handle::Handle;
use ascend_sys::codes::*;
use ascend_sys::types::*;

/// A communicator.
pub(crate) struct Comm {
    pub(crate) handle: Handle,
    pub(crate) name: String,
    pub(crate) rank: u32,
}

impl Comm {
    pub(crate) fn new(handle: Handle, device: &Device, rank: u32) -> Self {
        Self {
            handle,
            name: format!("sim_group_{}_{rank}", device.logical),
            rank,
        }
    }
}

/// The parameters of a collective whose result contains the data that the rank sends.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) send: usize,
    pub(crate) recv: usize,
    pub(crate) count: u64,
    pub(crate) data_type: HcclDataType,
    /// True if each rank has its own part of the receive buffer.
    pub(crate) gathers: bool,
}

impl Part {
    pub(crate) fn effect(self, comm: &Comm) -> Outcome<Effect> {
        let count = usize::try_from(self.count).map_err(|_| ACL_ERROR_INVALID_PARAM)?;
        let each = hccl_element_bytes(self.data_type).ok_or(ACL_ERROR_INVALID_PARAM)?;
        let bytes = count.checked_mul(each).ok_or(ACL_ERROR_INVALID_PARAM)?;
        if bytes > 0 && (self.send == 0 || self.recv == 0) {
            return Err(ACL_ERROR_INVALID_PARAM);
        }
        let offset = if self.gathers {
            comm.rank as usize * bytes
        } else {
            0
        };
        Ok(Effect::Copy {
            dst: self.recv + offset,
            src: self.send,
            bytes,
        })
    }
}

/// Converts an outcome to an error code of HCCL.
pub(crate) fn result(outcome: Outcome) -> HcclResult {
    const PARAMETER: HcclResult = 1;
    const RUNTIME: HcclResult = 15;
    match outcome {
        Ok(()) => 0,
        Err(ACL_ERROR_INVALID_PARAM) => PARAMETER,
        Err(code) if (1..=23).contains(&code) => code,
        Err(_) => RUNTIME,
    }
}
