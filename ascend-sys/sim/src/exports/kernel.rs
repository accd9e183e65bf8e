//! Binaries and function handles.

use super::*;

exports! { acl::kernel, code;
    fn aclrtBinaryLoadFromData(data: *const c_void, length: usize, _options: *const aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle) {
        data.not_null()?;
        binary.not_null()?;
        context::here()?;
        fail_if(length == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        binary.put(runtime().kernels.load().handle.pointer())
    }

    fn aclrtGetFunctionName(func: aclrtFuncHandle, length: u32, name: *mut c_char) {
        let function = runtime().kernels.functions.get(func.0)?;
        name.put_text(&function.name, length as usize)
    }
}

exports! { acl::naming, code;
    fn aclrtBinaryGetFunction(binary: aclrtBinHandle, name: *const c_char, func: *mut aclrtFuncHandle) {
        func.not_null()?;
        let function = runtime().kernels.by_name(&*runtime().kernels.binaries.get(binary.0)?, &name.text()?);
        func.put(function.handle.pointer())
    }
}
