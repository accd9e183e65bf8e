//! Offline models and single operators: one kernel each.

use super::launch::{Args, submit};
use super::*;

exports! { acl::model, code;
    fn aclmdlExecute(model: u32, _input: *const aclmdlDataset, _output: *mut aclmdlDataset) {
        run_and_wait(model, std::ptr::null_mut())
    }

    fn aclmdlExecuteV2(model: u32, _input: *const aclmdlDataset, _output: *mut aclmdlDataset, stream: aclrtStream, _config: *const aclmdlExecConfigHandle) {
        run_and_wait(model, stream.0)
    }

    fn aclmdlExecuteAsync(model: u32, _input: *const aclmdlDataset, _output: *mut aclmdlDataset, stream: aclrtStream) {
        run(&format!("model_{model}"), stream.0)
    }

    fn aclmdlExecuteAsyncV2(model: u32, _input: *const aclmdlDataset, _output: *mut aclmdlDataset, stream: aclrtStream, _config: *const aclmdlExecConfigHandle) {
        run(&format!("model_{model}"), stream.0)
    }

    fn aclopExecuteV2(op: *const c_char, _input_count: c_int, _input_desc: *mut *mut aclTensorDesc, _inputs: *mut *mut aclDataBuffer, _output_count: c_int, _output_desc: *mut *mut aclTensorDesc, _outputs: *mut *mut aclDataBuffer, _attr: *mut aclopAttr, stream: aclrtStream) {
        operator(op, stream.0)
    }

    fn aclopCompileAndExecute(op: *const c_char, _input_count: c_int, _input_desc: *const *const aclTensorDesc, _inputs: *const *const aclDataBuffer, _output_count: c_int, _output_desc: *const *const aclTensorDesc, _outputs: *const *mut aclDataBuffer, _attr: *const aclopAttr, _engine: aclopEngineType, _compile: aclopCompileType, _path: *const c_char, stream: aclrtStream) {
        operator(op, stream.0)
    }

    fn aclopCompileAndExecuteV2(op: *const c_char, _input_count: c_int, _input_desc: *mut *mut aclTensorDesc, _inputs: *mut *mut aclDataBuffer, _output_count: c_int, _output_desc: *mut *mut aclTensorDesc, _outputs: *mut *mut aclDataBuffer, _attr: *mut aclopAttr, _engine: aclopEngineType, _compile: aclopCompileType, _path: *const c_char, stream: aclrtStream) {
        operator(op, stream.0)
    }
}

fn operator(op: In<c_char>, stream: aclrtStream) -> Outcome {
    run(&op.text()?, stream)
}

fn run(name: &str, stream: aclrtStream) -> Outcome {
    config().faults.check(Site::Launch)?;
    submit(runtime().kernels.named(name), 1, Args::Unknown, stream)
}

fn run_and_wait(model: u32, stream: aclrtStream) -> Outcome {
    run(&format!("model_{model}"), stream)?;
    runtime().stream_here(stream)?.synchronize(None)?;
    context::here().map(drop)
}
