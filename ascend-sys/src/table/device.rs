//! Initialisation, devices, contexts.

lists! { $
    /// Passes the functions of initialisation and of versions to a macro; see [`crate::acl::init`].
    for_each_init {
        fn aclInit(config_path: *const c_char) -> aclError;
        fn aclsysGetVersionStr(package: *mut c_char, version: *mut c_char) -> aclError;
        fn aclGetRecentErrMsg() -> *const c_char;
        fn aclrtGetSocName() -> *const c_char;
        fn aclFinalizeCallbackRegister(kind: aclRegisterCallbackType, callback: aclFinalizeCallbackFunc, user_data: *mut c_void) -> aclError;
    }

    /// Passes the functions that begin and end the use of devices, contexts and streams to a macro; see [`crate::acl::lifecycle`].
    for_each_lifecycle {
        fn aclFinalize() -> aclError;
        fn aclrtSetDevice(device: i32) -> aclError;
        fn aclrtResetDevice(device: i32) -> aclError;
        fn aclrtResetDeviceForce(device: i32) -> aclError;
        fn aclrtDestroyContext(context: aclrtContext) -> aclError;
        fn aclrtDestroyStream(stream: aclrtStream) -> aclError;
        fn aclrtDestroyStreamForce(stream: aclrtStream) -> aclError;
    }

    /// Passes the functions about devices to a macro; see [`crate::acl::device`].
    for_each_device {
        fn aclrtGetDevice(device: *mut i32) -> aclError;
        fn aclrtGetDeviceCount(count: *mut u32) -> aclError;
        fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: *mut i32) -> aclError;
        fn aclrtGetPhyDevIdByUserDevId(user: i32, physical: *mut i32) -> aclError;
        fn aclrtGetDeviceInfo(device: u32, attribute: aclrtDevAttr, value: *mut i64) -> aclError;
        fn aclrtRegDeviceStateCallback(name: *const c_char, callback: aclrtDeviceStateCallback, args: *mut c_void) -> aclError;
    }

    /// Passes the functions of contexts to a macro; see [`crate::acl::context`].
    for_each_context {
        fn aclrtCreateContext(context: *mut aclrtContext, device: i32) -> aclError;
        fn aclrtSetCurrentContext(context: aclrtContext) -> aclError;
        fn aclrtGetCurrentContext(context: *mut aclrtContext) -> aclError;
        fn aclrtCtxGetCurrentDefaultStream(stream: *mut aclrtStream) -> aclError;
    }
}
