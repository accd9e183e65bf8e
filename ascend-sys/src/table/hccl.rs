//! Collectives.

lists! { $
    /// Passes the functions that submit a collective to a macro; see [`crate::hccl::collective`].
    for_each_collective {
        fn HcclAllReduce(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, op: HcclReduceOp, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclReduceScatter(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, op: HcclReduceOp, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclReduce(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, op: HcclReduceOp, root: u32, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclAllGather(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclBroadcast(buffer: *mut c_void, count: u64, data_type: HcclDataType, root: u32, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclScatter(send: *mut c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, root: u32, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclSend(buffer: *mut c_void, count: u64, data_type: HcclDataType, peer: u32, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclRecv(buffer: *mut c_void, count: u64, data_type: HcclDataType, peer: u32, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclAlltoAll(send: *const c_void, send_count: u64, send_type: HcclDataType, recv: *const c_void, recv_count: u64, recv_type: HcclDataType, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclAlltoAllV(send: *const c_void, send_counts: *const c_void, send_offsets: *const c_void, send_type: HcclDataType, recv: *const c_void, recv_counts: *const c_void, recv_offsets: *const c_void, recv_type: HcclDataType, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclAlltoAllVC(send: *const c_void, send_counts: *const c_void, send_type: HcclDataType, recv: *const c_void, recv_type: HcclDataType, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclAllGatherV(send: *mut c_void, count: u64, recv: *mut c_void, recv_counts: *const c_void, recv_offsets: *const c_void, data_type: HcclDataType, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclReduceScatterV(send: *mut c_void, send_counts: *const c_void, send_offsets: *const c_void, recv: *mut c_void, count: u64, data_type: HcclDataType, op: HcclReduceOp, comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclBarrier(comm: HcclComm, stream: aclrtStream) -> HcclResult;
        fn HcclBatchSendRecv(items: *mut HcclSendRecvItem, item_count: u32, comm: HcclComm, stream: aclrtStream) -> HcclResult;
    }

    /// Passes the functions of communicators to a macro; see [`crate::hccl::comm`].
    for_each_comm {
        fn HcclGetRootInfo(root: *mut HcclRootInfo) -> HcclResult;
        fn HcclCommInitRootInfo(rank_count: u32, root: *const HcclRootInfo, rank: u32, comm: *mut HcclComm) -> HcclResult;
        fn HcclCommInitAll(device_count: u32, devices: *mut i32, comms: *mut HcclComm) -> HcclResult;
        fn HcclCommDestroy(comm: HcclComm) -> HcclResult;
        /// Writes the name of a communicator to `name`, which must have room for 128 bytes.
        fn HcclGetCommName(comm: HcclComm, name: *mut c_char) -> HcclResult;
    }
}
