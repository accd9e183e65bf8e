//! Launches of the rt level: by programs, and by ACL when an older CANN is simulated.

use super::launch::{Args, submit};
use super::*;
use crate::kernel::Function;
use ascend_sys::rt;
use ascend_sys::rt::launch::rtLaunchKernelByFuncHandleV3 as ByFuncHandle;
use std::sync::Arc;

/// The beginning of `rtArgsEx_t`, and room for the rest.
#[repr(C)]
struct ArgsEx {
    args: *mut c_void,
    host_inputs: *mut c_void,
    args_size: u32,
    rest: [u32; 27],
}

/// A call that goes from ACL to the rt level across the libraries, so that a preload of both sees both.
pub(super) fn through_rt(
    func: aclrtFuncHandle,
    num_blocks: u32,
    args: Args,
    stream: aclrtStream,
) -> Outcome {
    let address = match args {
        Args::Host(address) | Args::Device(address) => address,
        Args::Each(_) | Args::Unknown => {
            return submit(
                runtime().kernels.functions.get(func)?,
                num_blocks,
                args,
                stream,
            );
        }
    };
    let args = ArgsEx {
        args: std::ptr::with_exposed_provenance_mut(address),
        host_inputs: std::ptr::null_mut(),
        args_size: 0,
        rest: [0; 27],
    };
    let call = by_func_handle();
    // SAFETY: `args` is as the function expects, and lives for the call.
    outcome(unsafe {
        call(
            func,
            num_blocks,
            (&raw const args).cast(),
            stream,
            std::ptr::null(),
        )
    })
}

/// The function that a call from another library would reach.
fn by_func_handle() -> ByFuncHandle {
    // SAFETY: asks for the program itself, which is loaded.
    let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // RTLD_DEFAULT would begin in this library, since it is linked with -Bsymbolic.
    // SAFETY: the handle is the program's, and the name is a string of C.
    let found = unsafe { libc::dlsym(program, c"rtLaunchKernelByFuncHandleV3".as_ptr()) };
    if found.is_null() {
        return rtLaunchKernelByFuncHandleV3; // the program has loaded this library for itself alone
    }
    // SAFETY: whatever exports the vendor's name has its signature.
    unsafe { std::mem::transmute::<*mut c_void, ByFuncHandle>(found) }
}

/// The arguments that a struct of the rt level begins with.
fn inside(args: In<rtArgsEx_t>) -> Args {
    In(args.0.cast::<*mut c_void>())
        .get()
        .map_or(Args::Unknown, |args| Args::Host(args.expose_provenance()))
}

fn inside_mut(args: Out<rtArgsEx_t>) -> Args {
    inside(In(args.0.cast_const()))
}

/// Submits a launch that a program makes itself. If ACL makes it, the faults were checked there.
fn direct(function: Arc<Function>, num_blocks: u32, args: Args, stream: rtStream_t) -> Outcome {
    config().faults.check(Site::Launch)?;
    submit(function, num_blocks, args, stream)
}

fn stub(stub: In<c_void>, num_blocks: u32, args: Args, stream: rtStream_t) -> Outcome {
    let function = runtime().kernels.by_stub(stub.address())?;
    direct(function, num_blocks, args, stream)
}

fn tiled(
    binary: Out<c_void>,
    key: u64,
    num_blocks: u32,
    args: Args,
    stream: rtStream_t,
) -> Outcome {
    let function = runtime()
        .kernels
        .by_entry(&*runtime().kernels.binaries.get(binary.0)?, key);
    direct(function, num_blocks, args, stream)
}

fn named(name: &str, num_blocks: u32, stream: rtStream_t) -> Outcome {
    direct(
        runtime().kernels.named(name),
        num_blocks,
        Args::Unknown,
        stream,
    )
}

exports! { rt::launch, code;
    fn rtKernelLaunch(func: *const c_void, num_blocks: u32, args: *mut c_void, _args_size: u32, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t) {
        stub(func, num_blocks, Args::Host(args.address()), stream.0)
    }

    fn rtKernelLaunchWithFlag(func: *const c_void, num_blocks: u32, args: *mut rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _flags: u32) {
        stub(func, num_blocks, inside_mut(args), stream.0)
    }

    fn rtKernelLaunchWithFlagV2(func: *const c_void, num_blocks: u32, args: *mut rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _flags: u32, _cfg: *const rtTaskCfgInfo_t) {
        stub(func, num_blocks, inside_mut(args), stream.0)
    }

    fn rtKernelLaunchWithHandle(handle: *mut c_void, tiling_key: u64, num_blocks: u32, args: *mut rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _kernel_info: *const c_void) {
        tiled(handle, tiling_key, num_blocks, inside_mut(args), stream.0)
    }

    fn rtKernelLaunchWithHandleV2(handle: *mut c_void, tiling_key: u64, num_blocks: u32, args: *mut rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _cfg: *const rtTaskCfgInfo_t) {
        tiled(handle, tiling_key, num_blocks, inside_mut(args), stream.0)
    }

    fn rtKernelLaunchEx(_args: *mut c_void, _args_size: u32, _flags: u32, stream: rtStream_t) {
        named("framework", 1, stream.0)
    }

    fn rtKernelLaunchFwk(op: *const c_char, _args: *mut c_void, _args_size: u32, _flags: u32, stream: rtStream_t) {
        named(&op.text()?, 1, stream.0)
    }

    fn rtVectorCoreKernelLaunch(func: *const c_void, num_blocks: u32, args: *mut rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _flags: u32, _cfg: *const rtTaskCfgInfo_t) {
        stub(func, num_blocks, inside_mut(args), stream.0)
    }

    fn rtVectorCoreKernelLaunchWithHandle(handle: *mut c_void, tiling_key: u64, num_blocks: u32, args: *mut rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _cfg: *const rtTaskCfgInfo_t) {
        tiled(handle, tiling_key, num_blocks, inside_mut(args), stream.0)
    }

    fn rtLaunchKernelByFuncHandle(func: rtFuncHandle, num_blocks: u32, _args: rtLaunchArgsHandle, stream: rtStream_t) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Unknown, stream.0)
    }

    fn rtLaunchKernelByFuncHandleV2(func: rtFuncHandle, num_blocks: u32, _args: rtLaunchArgsHandle, stream: rtStream_t, _cfg: *const rtTaskCfgInfo_t) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Unknown, stream.0)
    }

    fn rtLaunchKernelByFuncHandleV3(func: rtFuncHandle, num_blocks: u32, args: *const rtArgsEx_t, stream: rtStream_t, _cfg: *const rtTaskCfgInfo_t) {
        submit(runtime().kernels.functions.get(func.0)?, num_blocks, inside(args), stream.0)
    }

    fn rtAicpuKernelLaunchExWithArgs(_kind: u32, op: *const c_char, num_blocks: u32, _args: *const rtAicpuArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _flags: u32) {
        named(&op.text()?, num_blocks, stream.0)
    }

    fn rtAicpuKernelLaunchWithFlag(_names: *const rtKernelLaunchNames_t, num_blocks: u32, _args: *const rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _flags: u32) {
        named("aicpu", num_blocks, stream.0)
    }

    fn rtCpuKernelLaunchWithFlag(_so_name: *const c_void, kernel_name: *const c_void, num_blocks: u32, _args: *const rtArgsEx_t, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t, _flags: u32) {
        named(&In(kernel_name.0.cast::<c_char>()).text()?, num_blocks, stream.0)
    }

    fn rtFusionLaunch(_fusion: *mut c_void, stream: rtStream_t, _args: *mut rtFusionArgsEx_t) {
        named("fusion", 1, stream.0)
    }

    fn rtFftsPlusTaskLaunch(_task: *mut rtFftsPlusTaskInfo_t, stream: rtStream_t) {
        named("ffts_plus", 1, stream.0)
    }

    fn rtFftsPlusTaskLaunchWithFlag(_task: *mut rtFftsPlusTaskInfo_t, stream: rtStream_t, _flag: u32) {
        named("ffts_plus", 1, stream.0)
    }

    fn rtsLaunchKernelWithHostArgs(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, _cfg: *mut rtKernelLaunchCfg_t, args: *mut c_void, _args_size: u32, _place_holders: *mut rtPlaceHolderInfo_t, _place_holder_count: u32) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Host(args.address()), stream.0)
    }

    fn rtsLaunchKernelWithConfig(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, _cfg: *mut rtKernelLaunchCfg_t, _args: rtArgsHandle, _reserve: *mut c_void) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Unknown, stream.0)
    }

    fn rtsLaunchKernelWithDevArgs(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, _cfg: *mut rtKernelLaunchCfg_t, args: *const c_void, _args_size: u32, _reserve: *mut c_void) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Device(args.address()), stream.0)
    }

    fn rtsLaunchCpuKernel(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, _cfg: *const rtKernelLaunchCfg_t, _args: *mut rtCpuKernelArgs_t) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Unknown, stream.0)
    }
}
