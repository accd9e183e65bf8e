//! The rt level (libruntime.so), below ACL.

lists! { $
    /// Passes the functions of the rt level that launch work to a macro; see [`crate::rt::launch`].
    for_each_rt_launch {
        fn rtKernelLaunch(stub: *const c_void, num_blocks: u32, args: *mut c_void, args_size: u32, sm_desc: *mut rtSmDesc_t, stream: rtStream_t) -> rtError_t;
        fn rtKernelLaunchWithFlag(stub: *const c_void, num_blocks: u32, args: *mut rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, flags: u32) -> rtError_t;
        fn rtKernelLaunchWithFlagV2(stub: *const c_void, num_blocks: u32, args: *mut rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, flags: u32, cfg: *const rtTaskCfgInfo_t) -> rtError_t;
        fn rtKernelLaunchWithHandle(handle: *mut c_void, tiling_key: u64, num_blocks: u32, args: *mut rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, kernel_info: *const c_void) -> rtError_t;
        fn rtKernelLaunchWithHandleV2(handle: *mut c_void, tiling_key: u64, num_blocks: u32, args: *mut rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, cfg: *const rtTaskCfgInfo_t) -> rtError_t;
        fn rtKernelLaunchEx(args: *mut c_void, args_size: u32, flags: u32, stream: rtStream_t) -> rtError_t;
        fn rtKernelLaunchFwk(op: *const c_char, args: *mut c_void, args_size: u32, flags: u32, stream: rtStream_t) -> rtError_t;
        fn rtVectorCoreKernelLaunch(stub: *const c_void, num_blocks: u32, args: *mut rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, flags: u32, cfg: *const rtTaskCfgInfo_t) -> rtError_t;
        fn rtVectorCoreKernelLaunchWithHandle(handle: *mut c_void, tiling_key: u64, num_blocks: u32, args: *mut rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, cfg: *const rtTaskCfgInfo_t) -> rtError_t;
        fn rtLaunchKernelByFuncHandle(func: rtFuncHandle, num_blocks: u32, args: rtLaunchArgsHandle, stream: rtStream_t) -> rtError_t;
        fn rtLaunchKernelByFuncHandleV2(func: rtFuncHandle, num_blocks: u32, args: rtLaunchArgsHandle, stream: rtStream_t, cfg: *const rtTaskCfgInfo_t) -> rtError_t;
        fn rtLaunchKernelByFuncHandleV3(func: rtFuncHandle, num_blocks: u32, args: *const rtArgsEx_t, stream: rtStream_t, cfg: *const rtTaskCfgInfo_t) -> rtError_t;
        fn rtAicpuKernelLaunchExWithArgs(kind: u32, op: *const c_char, num_blocks: u32, args: *const rtAicpuArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, flags: u32) -> rtError_t;
        fn rtAicpuKernelLaunchWithFlag(names: *const rtKernelLaunchNames_t, num_blocks: u32, args: *const rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, flags: u32) -> rtError_t;
        fn rtCpuKernelLaunchWithFlag(so_name: *const c_void, kernel_name: *const c_void, num_blocks: u32, args: *const rtArgsEx_t, sm_desc: *mut rtSmDesc_t, stream: rtStream_t, flags: u32) -> rtError_t;
        fn rtFusionLaunch(fusion: *mut c_void, stream: rtStream_t, args: *mut rtFusionArgsEx_t) -> rtError_t;
        fn rtFftsPlusTaskLaunch(task: *mut rtFftsPlusTaskInfo_t, stream: rtStream_t) -> rtError_t;
        fn rtFftsPlusTaskLaunchWithFlag(task: *mut rtFftsPlusTaskInfo_t, stream: rtStream_t, flag: u32) -> rtError_t;
        fn rtsLaunchKernelWithHostArgs(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, cfg: *mut rtKernelLaunchCfg_t, args: *mut c_void, args_size: u32, place_holders: *mut rtPlaceHolderInfo_t, place_holder_count: u32) -> rtError_t;
        fn rtsLaunchKernelWithConfig(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, cfg: *mut rtKernelLaunchCfg_t, args: rtArgsHandle, reserve: *mut c_void) -> rtError_t;
        fn rtsLaunchKernelWithDevArgs(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, cfg: *mut rtKernelLaunchCfg_t, args: *const c_void, args_size: u32, reserve: *mut c_void) -> rtError_t;
        fn rtsLaunchCpuKernel(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, cfg: *const rtKernelLaunchCfg_t, args: *mut rtCpuKernelArgs_t) -> rtError_t;
    }

    /// Passes the functions of the rt level that run a model to a macro; see [`crate::rt::model`].
    for_each_rt_model {
        fn rtModelExecute(model: rtModel_t, stream: rtStream_t, flag: u32) -> rtError_t;
    }

    /// Passes the function of the rt level that returns the calling thread's last task to a macro; see [`crate::rt::thread`].
    for_each_rt_thread {
        /// Returns the last task that the calling thread submitted, and its stream.
        fn rtGetTaskIdAndStreamID(task_id: *mut u32, stream_id: *mut u32) -> rtError_t;
    }

    /// Passes the functions that name stubs and register binaries with all their kernels to a macro; see [`crate::rt::naming`].
    for_each_rt_naming {
        fn rtFunctionRegister(binary: *mut c_void, stub: *const c_void, name: *const c_char, kernel_info: *const c_void, mode: u32) -> rtError_t;
        fn rtRegisterAllKernel(binary: *const rtDevBinary_t, handle: *mut *mut c_void) -> rtError_t;
    }
}
