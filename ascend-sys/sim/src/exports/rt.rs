//! Events, models and names of the rt level: other ways to the same things.

use super::*;
use ascend_sys::rt;

exports! { rt::event, code;
    fn rtEventCreateWithFlag(event: *mut rtEvent_t, flag: u32) {
        event.not_null()?;
        event.put(event::create(flag, false)?)
    }

    fn rtEventCreateExWithFlag(event: *mut rtEvent_t, flag: u32) {
        event.not_null()?;
        event.put(event::create(flag, true)?)
    }

    fn rtEventRecord(event: rtEvent_t, stream: rtStream_t) {
        event::record(event.0, stream.0)
    }

    fn rtEventQueryStatus(event: rtEvent_t, status: *mut rtEventStatus_t) {
        status.put(event::recorded_status(event.0)?)
    }

    fn rtEventElapsedTime(ms: *mut f32, start: rtEvent_t, end: rtEvent_t) {
        ms.put(event::elapsed_ms(start.0, end.0)?)
    }

    fn rtEventGetTimeStamp(us: *mut u64, event: rtEvent_t) {
        us.put(event::timestamp_us(event.0)?)
    }

    fn rtsEventGetTimeStamp(us: *mut u64, event: rtEvent_t) {
        us.put(event::timestamp_us(event.0)?)
    }

    fn rtGetDeviceInfo(device: u32, module: i32, info: i32, value: *mut i64) {
        value.put(hal::read(device, module, info)?)
    }
}

exports! { rt::model, code;
    fn rtModelExecute(model: rtModel_t, stream: rtStream_t, _flag: u32) {
        graph::execute(model.0, stream.0)
    }

    fn rtModelExecuteSync(model: rtModel_t, stream: rtStream_t, _flag: u32, timeout_ms: i32) {
        graph::execute_and_wait(model.0, stream.0, timeout_ms)
    }
}

exports! { rt::naming, code;
    fn rtFunctionRegister(_binary: *mut c_void, stub: *const c_void, name: *const c_char, _kernel_info: *const c_void, _mode: u32) {
        stub.not_null()?;
        runtime().kernels.register_stub(stub.address(), &name.text()?);
        Ok(())
    }

    fn rtRegisterAllKernel(binary: *const rtDevBinary_t, handle: *mut *mut c_void) {
        handle.not_null()?;
        let binary = binary.get()?;
        fail_if(binary.data.is_null() || binary.length == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        handle.put(runtime().kernels.load().handle.pointer())
    }
}
