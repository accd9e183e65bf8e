//! Collectives and communicators.

use super::*;
use crate::hccl::{Part, result};
use ascend_sys::hccl;

exports! { hccl::collective, result;
    fn HcclAllReduce(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, _op: HcclReduceOp, comm: HcclComm, stream: aclrtStream) {
        submit("HcclAllReduce", comm.0, stream.0, Some(Part { send: send.address(), recv: recv.address(), count, data_type, gathers: false }))
    }

    fn HcclReduceScatter(_send: *mut c_void, _recv: *mut c_void, _count: u64, _data_type: HcclDataType, _op: HcclReduceOp, comm: HcclComm, stream: aclrtStream) {
        submit("HcclReduceScatter", comm.0, stream.0, None)
    }

    fn HcclAllGather(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, comm: HcclComm, stream: aclrtStream) {
        submit("HcclAllGather", comm.0, stream.0, Some(Part { send: send.address(), recv: recv.address(), count, data_type, gathers: true }))
    }

    fn HcclBroadcast(_buffer: *mut c_void, _count: u64, _data_type: HcclDataType, _root: u32, comm: HcclComm, stream: aclrtStream) {
        submit("HcclBroadcast", comm.0, stream.0, None)
    }

    fn HcclAlltoAll(_send: *const c_void, _send_count: u64, _send_type: HcclDataType, _recv: *const c_void, _recv_count: u64, _recv_type: HcclDataType, comm: HcclComm, stream: aclrtStream) {
        submit("HcclAlltoAll", comm.0, stream.0, None)
    }

    fn HcclBarrier(comm: HcclComm, stream: aclrtStream) {
        submit("HcclBarrier", comm.0, stream.0, None)
    }
}

exports! { hccl::comm, result;
    fn HcclGetRootInfo(root: *mut HcclRootInfo) {
        root.put(HcclRootInfo { internal: [0; 4108] })
    }

    fn HcclCommInitRootInfo(rank_count: u32, root: *const HcclRootInfo, rank: u32, comm: *mut HcclComm) {
        root.not_null()?;
        comm.not_null()?;
        let new = runtime().new_comm(&context::here()?.device, rank, rank_count)?;
        comm.put(new.handle.pointer())
    }

    fn HcclCommInitAll(device_count: u32, devices: *mut i32, comms: *mut HcclComm) {
        comms.not_null()?;
        let create = |rank: u32| {
            let device = Out(devices.0.wrapping_add(rank as usize)).get()?;
            let comm = runtime().new_comm(runtime().device(device)?, rank, device_count)?;
            Ok(comm.handle.pointer())
        };
        let new: Outcome<Vec<HcclComm>> = (0..device_count).map(create).collect();
        comms.put_all(new?.into_iter())
    }

    fn HcclCommDestroy(comm: HcclComm) {
        runtime().comms.remove(comm.0).map(drop)
    }

    fn HcclGetCommName(comm: HcclComm, name: *mut c_char) {
        name.put_text(&runtime().comms.get(comm.0)?.name, HCCL_COMM_NAME_BYTES)
    }
}

/// Submits a collective.
fn submit(name: &'static str, comm: HcclComm, stream: aclrtStream, part: Option<Part>) -> Outcome {
    let context = context::here()?;
    let comm = runtime().comms.get(comm)?;
    let effect = part.map(|part| part.effect(&comm)).transpose()?;
    let stream = runtime().stream(&context, stream)?;
    stream.submit(Work::Collective {
        name,
        comm: comm.name.as_str().into(),
        effect,
    })
}
