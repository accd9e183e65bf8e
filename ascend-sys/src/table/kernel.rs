//! Kernels: their binaries, names and launches.

lists! { $
    /// Passes the functions of binaries and function handles to a macro; see [`crate::acl::kernel`].
    for_each_kernel {
        fn aclrtBinaryLoadFromData(data: *const c_void, length: usize, options: *const aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle) -> aclError;
        /// Writes the name of a kernel to `name`, by its handle. Available since CANN 8.5.
        fn aclrtGetFunctionName(func: aclrtFuncHandle, length: u32, name: *mut c_char) -> aclError;
    }

    /// Passes the functions that reveal a kernel's name to a macro; see [`crate::acl::naming`].
    for_each_naming {
        fn aclrtBinaryGetFunction(binary: aclrtBinHandle, name: *const c_char, func: *mut aclrtFuncHandle) -> aclError;
        fn aclrtBinaryGetFunctionByEntry(binary: aclrtBinHandle, entry: u64, func: *mut aclrtFuncHandle) -> aclError;
    }

    /// Passes the functions that launch a kernel to a macro; see [`crate::acl::launch`].
    for_each_launch {
        fn aclrtLaunchKernel(func: aclrtFuncHandle, num_blocks: u32, args: *const c_void, args_size: usize, stream: aclrtStream) -> aclError;
        fn aclrtLaunchKernelV2(func: aclrtFuncHandle, num_blocks: u32, args: *const c_void, args_size: usize, cfg: *mut aclrtLaunchKernelCfg, stream: aclrtStream) -> aclError;
        fn aclrtLaunchKernelWithConfig(func: aclrtFuncHandle, num_blocks: u32, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: aclrtArgsHandle, reserve: *mut c_void) -> aclError;
        /// Launches a kernel whose args are in the host's memory. This call may fail with 107017 and then be repeated for the same kernel.
        fn aclrtLaunchKernelWithHostArgs(func: aclrtFuncHandle, num_blocks: u32, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: *mut c_void, args_size: usize, place_holders: *mut aclrtPlaceHolderInfo, place_holder_count: usize) -> aclError;
    }
}
