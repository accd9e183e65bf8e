//! Single operators. Each one is a single kernel.

use super::launch::{Args, submit};
use super::*;

exports! { acl::model, code;
    fn aclopCompileAndExecute(op: *const c_char, _input_count: c_int, _input_desc: *const *const aclTensorDesc, _inputs: *const *const aclDataBuffer, _output_count: c_int, _output_desc: *const *const aclTensorDesc, _outputs: *const *mut aclDataBuffer, _attr: *const aclopAttr, _engine: aclopEngineType, _compile: aclopCompileType, _path: *const c_char, stream: aclrtStream) {
        operator(op, stream.0)
    }

    fn aclopCompileAndExecuteV2(op: *const c_char, _input_count: c_int, _input_desc: *mut *mut aclTensorDesc, _inputs: *mut *mut aclDataBuffer, _output_count: c_int, _output_desc: *mut *mut aclTensorDesc, _outputs: *mut *mut aclDataBuffer, _attr: *mut aclopAttr, _engine: aclopEngineType, _compile: aclopCompileType, _path: *const c_char, stream: aclrtStream) {
        operator(op, stream.0)
    }
}

fn operator(op: In<c_char>, stream: aclrtStream) -> Outcome {
    config().faults.check(Site::Launch)?;
    let kernel = runtime().kernels.named(&op.text()?);
    submit(kernel, 1, Args::Unknown, stream)
}
