//! Captured graphs (model RI), offline models and single operators.

lists! { $
    /// Passes the functions that capture, run, update and destroy a graph to a macro; see [`crate::acl::graph`].
    for_each_graph {
        fn aclmdlRICaptureBegin(stream: aclrtStream, mode: aclmdlRICaptureMode) -> aclError;
        fn aclmdlRICaptureEnd(stream: aclrtStream, model: *mut aclmdlRI) -> aclError;
        fn aclmdlRIExecute(model: aclmdlRI, timeout_ms: i32) -> aclError;
        fn aclmdlRIExecuteAsync(model: aclmdlRI, stream: aclrtStream) -> aclError;
        fn aclmdlRIDestroy(model: aclmdlRI) -> aclError;
        /// Begins a group of kernels. Those that are captured into the stream after this call can be updated later.
        fn aclmdlRICaptureTaskGrpBegin(stream: aclrtStream) -> aclError;
        fn aclmdlRICaptureTaskGrpEnd(stream: aclrtStream, group: *mut aclrtTaskGrp) -> aclError;
        /// Begins to update the kernels of a group. Launches into the stream after this call change them and do not run.
        fn aclmdlRICaptureTaskUpdateBegin(stream: aclrtStream, group: aclrtTaskGrp) -> aclError;
        fn aclmdlRICaptureTaskUpdateEnd(stream: aclrtStream) -> aclError;
        /// Makes the graph use the parameters that its tasks were given since the last update.
        fn aclmdlRIUpdate(model: aclmdlRI) -> aclError;
    }

    /// Passes the functions that query a graph to a macro; see [`crate::acl::graph_info`].
    for_each_graph_info {
        fn aclmdlRICaptureGetInfo(stream: aclrtStream, status: *mut aclmdlRICaptureStatus, model: *mut aclmdlRI) -> aclError;
        fn aclmdlRICaptureThreadExchangeMode(mode: *mut aclmdlRICaptureMode) -> aclError;
    }

    /// Passes the functions that run offline models and single operators to a macro; see [`crate::acl::model`].
    for_each_model {
        fn aclmdlExecute(model: u32, input: *const aclmdlDataset, output: *mut aclmdlDataset) -> aclError;
        fn aclmdlExecuteV2(model: u32, input: *const aclmdlDataset, output: *mut aclmdlDataset, stream: aclrtStream, config: *const aclmdlExecConfigHandle) -> aclError;
        fn aclmdlExecuteAsync(model: u32, input: *const aclmdlDataset, output: *mut aclmdlDataset, stream: aclrtStream) -> aclError;
        fn aclmdlExecuteAsyncV2(model: u32, input: *const aclmdlDataset, output: *mut aclmdlDataset, stream: aclrtStream, config: *const aclmdlExecConfigHandle) -> aclError;
        fn aclopExecuteV2(op: *const c_char, input_count: c_int, input_desc: *mut *mut aclTensorDesc, inputs: *mut *mut aclDataBuffer, output_count: c_int, output_desc: *mut *mut aclTensorDesc, outputs: *mut *mut aclDataBuffer, attr: *mut aclopAttr, stream: aclrtStream) -> aclError;
        fn aclopCompileAndExecute(op: *const c_char, input_count: c_int, input_desc: *const *const aclTensorDesc, inputs: *const *const aclDataBuffer, output_count: c_int, output_desc: *const *const aclTensorDesc, outputs: *const *mut aclDataBuffer, attr: *const aclopAttr, engine: aclopEngineType, compile: aclopCompileType, path: *const c_char, stream: aclrtStream) -> aclError;
        fn aclopCompileAndExecuteV2(op: *const c_char, input_count: c_int, input_desc: *mut *mut aclTensorDesc, inputs: *mut *mut aclDataBuffer, output_count: c_int, output_desc: *mut *mut aclTensorDesc, outputs: *mut *mut aclDataBuffer, attr: *mut aclopAttr, engine: aclopEngineType, compile: aclopCompileType, path: *const c_char, stream: aclrtStream) -> aclError;
    }
}
