//! Launches of the rt level, and the names of their kernels: by programs, and by ACL when an older CANN is simulated.

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

/// Submits a launch that a program makes itself. If ACL makes it, the faults were checked there.
fn direct(function: Arc<Function>, num_blocks: u32, args: Args, stream: rtStream_t) -> Outcome {
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
        direct(runtime().kernels.by_stub(func.address())?, num_blocks, Args::Host(args.address()), stream.0)
    }

    fn rtLaunchKernelByFuncHandleV3(func: rtFuncHandle, num_blocks: u32, args: *const rtArgsEx_t, stream: rtStream_t, _cfg: *const rtTaskCfgInfo_t) {
        submit(runtime().kernels.functions.get(func.0)?, num_blocks, inside(args), stream.0)
    }

    fn rtsLaunchKernelWithHostArgs(func: rtFuncHandle, num_blocks: u32, stream: rtStream_t, _cfg: *mut rtKernelLaunchCfg_t, args: *mut c_void, _args_size: u32, _place_holders: *mut rtPlaceHolderInfo_t, _place_holder_count: u32) {
        direct(runtime().kernels.functions.get(func.0)?, num_blocks, Args::Host(args.address()), stream.0)
    }
}
