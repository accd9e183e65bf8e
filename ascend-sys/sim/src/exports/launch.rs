//! Kernel launches of ACL.

use super::rt_launch::through_rt;
use super::*;
use crate::effect::Effect;
use crate::kernel::Function;
use std::sync::Arc;

/// The location of a launch's arguments. Only the simulator's own kernel uses them.
#[derive(Clone, Copy)]
pub(super) enum Args {
    /// In the host's memory. They are read during the launch.
    Host(usize),
    /// In the device's memory. They are read when the kernel runs.
    Device(usize),
    /// In a form that the simulator does not read.
    Unknown,
}

impl Args {
    /// Returns the effect of `sim_add_one`.
    fn effect(self) -> Outcome<Effect> {
        match self {
            Self::Host(0) | Self::Device(0) => Err(ACL_ERROR_RT_PARAM_INVALID),
            Self::Host(args) => Ok(Effect::add_one(args)),
            Self::Device(args) => Ok(Effect::Deferred { args }),
            Self::Unknown => Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
        }
    }
}

/// Submits a kernel.
pub(super) fn submit(
    function: Arc<Function>,
    num_blocks: u32,
    args: Args,
    stream: aclrtStream,
) -> Outcome {
    let context = context::here()?;
    fail_if(num_blocks == 0, ACL_ERROR_RT_PARAM_INVALID)?;
    let stream = runtime().stream(&context, stream)?;
    let effect = function.adds_one.then(|| args.effect()).transpose()?;
    stream.submit(Work::Kernel { function, effect })
}

/// Launches a kernel for ACL: directly, or through the rt level like an older CANN.
fn launch(func: aclrtFuncHandle, num_blocks: u32, args: Args, stream: aclrtStream) -> Outcome {
    config().faults.check(Site::Launch)?;
    if config().old {
        return through_rt(func, num_blocks, args, stream);
    }
    submit(
        runtime().kernels.functions.get(func)?,
        num_blocks,
        args,
        stream,
    )
}

exports! { acl::launch, code;
    fn aclrtLaunchKernel(func: aclrtFuncHandle, num_blocks: u32, args: *const c_void, _args_size: usize, stream: aclrtStream) {
        launch(func.0, num_blocks, Args::Device(args.address()), stream.0)
    }

    fn aclrtLaunchKernelWithHostArgs(func: aclrtFuncHandle, num_blocks: u32, stream: aclrtStream, _cfg: *mut aclrtLaunchKernelCfg, args: *mut c_void, _args_size: usize, _place_holders: *mut aclrtPlaceHolderInfo, _place_holder_count: usize) {
        config().faults.check(Site::LaunchHostArgs)?;
        launch(func.0, num_blocks, Args::Host(args.address()), stream.0)
    }
}
