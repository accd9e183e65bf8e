//! Launches of the rt level, and the names of their kernels. Programs call them, and so does ACL when an older CANN is simulated.

use super::launch::{Args, submit};
use super::*;
use crate::kernel::Function;
use ascend_sys::rt;
use ascend_sys::rt::launch::rtLaunchKernelByFuncHandleV3 as ByFuncHandle;
use std::sync::Arc;

/// The beginning of `rtArgsEx_t`, with room for the rest.
#[repr(C)]
struct ArgsEx {
    args: *mut c_void,
    host_inputs: *mut c_void,
    args_size: u32,
    rest: [u32; 27],
}

/// Launches a kernel with a call from ACL to the rt level across library boundaries, so that a preload library that wraps both sees both.
pub(super) fn through_rt(
    func: aclrtFuncHandle,
    num_blocks: u32,
    args: Args,
    stream: aclrtStream,
) -> Outcome {
    let (Args::Host(address) | Args::Device(address)) = args else {
        return Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    };
    let args = ArgsEx {
        args: std::ptr::with_exposed_provenance_mut(address),
        host_inputs: std::ptr::null_mut(),
        args_size: 0,
        rest: [0; 27],
    };
    let call = by_func_handle();
    // SAFETY: `args` has the layout that the function expects, and is valid during the call.
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

/// Returns the function that a call from another library would reach.
fn by_func_handle() -> ByFuncHandle {
    // SAFETY: opens the program itself, which is loaded.
    let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // RTLD_DEFAULT would find the function in this library first, because it is linked with -Bsymbolic.
    // SAFETY: the handle belongs to the program, and the name is a C string.
    let found = unsafe { libc::dlsym(program, c"rtLaunchKernelByFuncHandleV3".as_ptr()) };
    if found.is_null() {
        return rtLaunchKernelByFuncHandleV3; // the program has loaded this library with RTLD_LOCAL
    }
    // SAFETY: a function with the vendor's name has the vendor's signature.
    unsafe { std::mem::transmute::<*mut c_void, ByFuncHandle>(found) }
}

/// Returns the kernel's arguments, whose address is at the beginning of the rt level's struct.
fn kernel_args(args: In<rtArgsEx_t>) -> Args {
    In(args.0.cast::<*mut c_void>())
        .get()
        .map_or(Args::Unknown, |args| Args::Host(args.expose_provenance()))
}

/// Submits a launch that a program makes at the rt level. For a launch through ACL, the faults were checked there.
fn launch(function: Arc<Function>, num_blocks: u32, args: Args, stream: rtStream_t) -> Outcome {
    config().faults.check(Site::Launch)?;
    submit(function, num_blocks, args, stream)
}

exports! { rt::naming, code;
    fn rtFunctionRegister(_binary: *mut c_void, stub: *const c_void, name: *const c_char, _kernel_info: *const c_void, _mode: u32) {
        stub.not_null()?;
        runtime().kernels.register_stub(stub.address(), &name.text()?);
        Ok(())
    }
}

exports! { rt::launch, code;
    fn rtKernelLaunch(func: *const c_void, num_blocks: u32, args: *mut c_void, _args_size: u32, _sm_desc: *mut rtSmDesc_t, stream: rtStream_t) {
        launch(runtime().kernels.by_stub(func.address())?, num_blocks, Args::Host(args.address()), stream.0)
    }

    fn rtLaunchKernelByFuncHandleV3(func: rtFuncHandle, num_blocks: u32, args: *const rtArgsEx_t, stream: rtStream_t, _cfg: *const rtTaskCfgInfo_t) {
        submit(runtime().kernels.functions.get(func.0)?, num_blocks, kernel_args(args), stream.0)
    }

    fn rtsLaunchKernelWithHostArgs(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, _cfg: *mut rtKernelLaunchCfg_t, args: *mut c_void, _args_size: u32, _place_holders: *mut rtPlaceHolderInfo_t, _place_holder_count: u32) {
        launch(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Host(args.address()), stream.0)
    }
}
