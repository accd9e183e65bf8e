//! Binaries and function handles.

use super::*;

exports! { acl::kernel, code;
    fn aclrtBinaryLoadFromFile(path: *const c_char, _options: *mut aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle) {
        path.not_null()?;
        binary.not_null()?;
        context::here()?;
        binary.put(runtime().kernels.load().handle.pointer())
    }

    fn aclrtBinaryLoadFromData(data: *const c_void, length: usize, _options: *const aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle) {
        data.not_null()?;
        binary.not_null()?;
        context::here()?;
        fail_if(length == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        binary.put(runtime().kernels.load().handle.pointer())
    }

    fn aclrtBinaryUnLoad(binary: aclrtBinHandle) {
        runtime().kernels.unload(&*runtime().kernels.binaries.get(binary.0)?)
    }

    fn aclrtGetFunctionName(func: aclrtFuncHandle, length: u32, name: *mut c_char) {
        let function = runtime().kernels.functions.get(func.0)?;
        name.put_text(&function.name, length as usize)
    }

    fn aclrtGetFunctionAttribute(func: aclrtFuncHandle, attribute: aclrtFuncAttribute, value: *mut i64) {
        runtime().kernels.functions.get(func.0)?;
        match attribute {
            ACL_FUNC_ATTR_KERNEL_TYPE => value.put(ACL_KERNEL_TYPE_MIX),
            _ => Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
        }
    }
}

exports! { acl::naming, code;
    fn aclrtBinaryGetFunction(binary: aclrtBinHandle, name: *const c_char, func: *mut aclrtFuncHandle) {
        func.not_null()?;
        let function = runtime().kernels.by_name(&*runtime().kernels.binaries.get(binary.0)?, &name.text()?);
        func.put(function.handle.pointer())
    }

    fn aclrtBinaryGetFunctionByEntry(binary: aclrtBinHandle, entry: u64, func: *mut aclrtFuncHandle) {
        func.not_null()?;
        func.put(runtime().kernels.by_entry(&*runtime().kernels.binaries.get(binary.0)?, entry).handle.pointer())
    }
}
