//! Callbacks of the host in a stream, and marks of a profiler.

use super::{code, exports, timeout};
use crate::context;
use crate::report::{Callback, reports, subscribed};
use crate::work::Work;
use ascend_sys::acl;
use ascend_sys::codes::*;
use ascend_sys::types::*;

exports! { acl::report, code;
    fn aclrtLaunchCallback(callback: aclrtCallback, user_data: *mut c_void, block: aclrtCallbackBlockType, stream: aclrtStream) {
        let callback = callback.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        let stream = context::here()?.stream(stream.0)?;
        let blocks = block == ACL_CALLBACK_BLOCK;
        let callback = subscribed(&stream, callback, user_data.address(), blocks)?;
        stream.submit(Work::Callback(callback))
    }

    fn aclrtSubscribeReport(thread: u64, stream: aclrtStream) {
        let stream = context::here()?.stream(stream.0)?;
        reports().subscribe(thread, &stream)
    }

    fn aclrtUnSubscribeReport(thread: u64, stream: aclrtStream) {
        let stream = context::here()?.stream(stream.0)?;
        reports().unsubscribe(thread, &stream)
    }

    fn aclrtProcessReport(timeout_ms: i32) {
        reports().process(timeout(timeout_ms)?)
    }

    fn aclrtProfTrace(user_data: *mut c_void, _length: i32, stream: aclrtStream) {
        user_data.not_null()?;
        let stream = context::here()?.stream(stream.0)?;
        stream.submit(Work::Mark { name: "aclrtProfTrace".into() })
    }
}

exports! { acl::host_func, code;
    fn aclrtLaunchHostFunc(stream: aclrtStream, callback: aclrtHostFunc, args: *mut c_void) {
        let function = callback.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        let stream = context::here()?.stream(stream.0)?;
        stream.submit(Work::Callback(Callback {
            function,
            data: args.address(),
            queue: None,
            blocks: true,
        }))
    }
}
