//! Callbacks of the host in a stream, and marks of a profiler.

use super::*;
use crate::report::Callback;

exports! { acl::report, code;
    fn aclrtLaunchCallback(callback: aclrtCallback, user_data: *mut c_void, block: aclrtCallbackBlockType, stream: aclrtStream) {
        let callback = callback.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        let stream = runtime().stream_here(stream.0)?;
        let blocks = block == ACL_CALLBACK_BLOCK;
        let callback = stream.reports.callback(callback, user_data.address(), blocks)?;
        stream.submit(Work::Callback(callback))
    }

    fn aclrtSubscribeReport(thread: u64, stream: aclrtStream) {
        let stream = runtime().stream_here(stream.0)?;
        runtime().reports.subscribe(thread, &stream.reports)
    }

    fn aclrtUnSubscribeReport(thread: u64, stream: aclrtStream) {
        let stream = runtime().stream_here(stream.0)?;
        runtime().reports.unsubscribe(thread, &stream.reports)
    }

    fn aclrtProcessReport(timeout_ms: i32) {
        runtime().reports.process(timeout(timeout_ms)?)
    }

    fn aclrtProfTrace(user_data: *mut c_void, _length: i32, stream: aclrtStream) {
        user_data.not_null()?;
        let stream = runtime().stream_here(stream.0)?;
        stream.submit(Work::Mark { name: "aclrtProfTrace".into() })
    }
}

exports! { acl::host_func, code;
    fn aclrtLaunchHostFunc(stream: aclrtStream, callback: aclrtHostFunc, args: *mut c_void) {
        let function = callback.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        let stream = runtime().stream_here(stream.0)?;
        stream.submit(Work::Callback(Callback {
            function,
            data: args.address(),
            queue: None,
            blocks: true,
        }))
    }
}
