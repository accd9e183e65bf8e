//! Devices and contexts.

use super::*;

exports! { acl::lifecycle, code;
    fn aclrtSetDevice(device: i32) {
        runtime().set_device(device)
    }

    fn aclrtResetDevice(device: i32) {
        runtime().reset_device(device, false)
    }

    fn aclrtResetDeviceForce(device: i32) {
        runtime().reset_device(device, true)
    }

    fn aclrtDestroyContext(context: aclrtContext) {
        context.not_null()?;
        runtime().destroy_context(&*runtime().contexts.get(context.0)?);
        Ok(())
    }
}

exports! { acl::device, code;
    fn aclrtGetDevice(device: *mut i32) {
        device.put(context::current()?.device.user)
    }

    fn aclrtGetDeviceCount(count: *mut u32) {
        count.put(u32::try_from(runtime().devices.len()).map_err(|_| ACL_ERROR_INTERNAL_ERROR)?)
    }

    fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: *mut i32) {
        logic.put(runtime().device(user)?.logical.cast_signed())
    }

    fn aclrtGetPhyDevIdByUserDevId(user: i32, physical: *mut i32) {
        physical.put(runtime().device(user)?.logical.cast_signed())
    }

    fn aclrtGetDeviceInfo(device: u32, attribute: aclrtDevAttr, value: *mut i64) {
        runtime().device(device.cast_signed())?;
        const AI_CPUS: aclrtDevAttr = 1;
        const AI_CORES: aclrtDevAttr = 101;
        const VECTOR_CORES: aclrtDevAttr = 201;
        value.put(match attribute {
            AI_CPUS => 6,
            AI_CORES => 24,
            VECTOR_CORES => 48,
            _ => return Err(ACL_ERROR_RT_PARAM_INVALID),
        })
    }

    fn aclrtRegDeviceStateCallback(name: *const c_char, callback: aclrtDeviceStateCallback, args: *mut c_void) {
        runtime().listeners.on_device(name.text()?, callback, args.address());
        Ok(())
    }
}

exports! { acl::context, code;
    fn aclrtCreateContext(context: *mut aclrtContext, device: i32) {
        context.not_null()?;
        let new = runtime().new_context(runtime().device(device)?);
        context.put(new.handle.pointer())?;
        context::set(Some(new));
        Ok(())
    }

    fn aclrtSetCurrentContext(context: aclrtContext) {
        context.not_null()?;
        context::set(Some(runtime().contexts.get(context.0)?));
        Ok(())
    }

    fn aclrtGetCurrentContext(context: *mut aclrtContext) {
        context.put(context::current()?.handle.pointer())
    }

    fn aclrtCtxGetCurrentDefaultStream(stream: *mut aclrtStream) {
        stream.put(runtime().default_stream(&*context::here()?)?.handle.pointer())
    }
}

exports! { acl::synchronize, code;
    fn aclrtSynchronizeDevice() {
        synchronize(None)
    }

    fn aclrtSynchronizeDeviceWithTimeout(timeout_ms: i32) {
        synchronize(timeout(timeout_ms)?)
    }
}

/// Waits for the streams of all contexts of the device.
fn synchronize(timeout_ms: Option<u64>) -> Outcome {
    let here = context::here()?;
    let contexts = runtime().contexts_of(here.device.user);
    contexts
        .iter()
        .try_for_each(|context| runtime().captures.invalidate_in(context.handle))?;
    contexts
        .iter()
        .try_for_each(|context| runtime().synchronize(context, timeout_ms))?;
    context::here().map(drop)
}
