//! Models and names of the rt level: other ways to the same things.

use super::*;
use ascend_sys::rt;

exports! { rt::model, code;
    fn rtModelExecute(model: rtModel_t, stream: rtStream_t, _flag: u32) {
        graph::execute(model.0, stream.0)
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
