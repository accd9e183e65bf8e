//! Kernels: their binaries, names and launches.

lists! { $
    /// Hands the functions of binaries and function handles to a macro; see [`crate::acl::kernel`].
    for_each_kernel {
        fn aclrtBinaryLoadFromFile(path: *const c_char, options: *mut aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle) -> aclError;
        fn aclrtBinaryLoadFromData(data: *const c_void, length: usize, options: *const aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle) -> aclError;
        fn aclrtBinaryUnLoad(binary: aclrtBinHandle) -> aclError;
        /// Since CANN 8.5.
        fn aclrtGetFunctionName(func: aclrtFuncHandle, length: u32, name: *mut c_char) -> aclError;
        fn aclrtGetFunctionAttribute(func: aclrtFuncHandle, attribute: aclrtFuncAttribute, value: *mut i64) -> aclError;
    }

    /// Hands the functions from which a kernel's name is learnt to a macro; see [`crate::acl::naming`].
    for_each_naming {
        fn aclrtBinaryGetFunction(binary: aclrtBinHandle, name: *const c_char, func: *mut aclrtFuncHandle) -> aclError;
        fn aclrtBinaryGetFunctionByEntry(binary: aclrtBinHandle, entry: u64, func: *mut aclrtFuncHandle) -> aclError;
    }

    /// Hands the functions that launch a kernel to a macro; see [`crate::acl::launch`].
    for_each_launch {
        fn aclrtLaunchKernel(func: aclrtFuncHandle, num_blocks: u32, args: *const c_void, args_size: usize, stream: aclrtStream) -> aclError;
        fn aclrtLaunchKernelV2(func: aclrtFuncHandle, num_blocks: u32, args: *const c_void, args_size: usize, cfg: *mut aclrtLaunchKernelCfg, stream: aclrtStream) -> aclError;
        fn aclrtLaunchKernelWithConfig(func: aclrtFuncHandle, num_blocks: u32, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: aclrtArgsHandle, reserve: *mut c_void) -> aclError;
        /// May fail once with 107017 and be called again for the same kernel.
        fn aclrtLaunchKernelWithHostArgs(func: aclrtFuncHandle, num_blocks: u32, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: *mut c_void, args_size: usize, place_holders: *mut aclrtPlaceHolderInfo, place_holder_count: usize) -> aclError;
        /// Since CANN 9.1.
        fn aclrtLaunchKernelWithArgsArray(func: *mut c_void, num_blocks: u32, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: *mut *mut c_void) -> aclError;
    }

    /// Hands the launches of CANN 9.2 with a grid of blocks to a macro; see [`crate::acl::simt`].
    for_each_simt {
        fn aclrtLaunchSIMTKernelWithArgsArray(func: *mut c_void, grid: dim3, block: dim3, dynamic_bytes: usize, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: *mut *mut c_void) -> aclError;
        fn aclrtLaunchSIMTKernelWithHostArgs(func: *mut c_void, grid: dim3, block: dim3, dynamic_bytes: usize, stream: aclrtStream, cfg: *mut aclrtLaunchKernelCfg, args: *mut c_void, args_size: usize, place_holders: *mut aclrtPlaceHolderInfo, place_holder_count: usize) -> aclError;
    }
}
