//! The exported wrappers and what each of them records. Names, arguments and types come from the tables of `ascend-sys`.
//!
//! Three kinds of functions are not exported. First, functions that some supported version of CANN lacks: a program with a weak reference would find ours
//! and take the function for available. (`dlsym` in the global scope still answers correctly.) Second, events, which are the most frequent calls. Third, memory.

use std::ffi::CStr;

use ascend_sys::types::*;

use crate::names::Name;
use crate::observe::{InterceptedLaunch, Kind, Wait, intercepted};
use crate::wrapper::{Hook, arg, hooks, listed};
use crate::{annotation, call, names, observe, task, traffic};

/// Name of the vendor's profiler in the trace.
const PROFILER: &str = "aclprof";

/// Returns true if a stream is still being captured after `aclmdlRICaptureEnd` returned this result. A failure usually ends the capture as well, except if the
/// call did not concern it: 107029 means that the stream is not being captured, 107038 that another thread is capturing.
fn capture_continues(result: aclError) -> bool {
    use ascend_sys::codes;
    matches!(
        result,
        codes::ACL_ERROR_RT_STREAM_NOT_CAPTURED | codes::ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD
    )
}

/// Returns true if a captured graph is still being updated after `aclmdlRICaptureTaskUpdateEnd` returned this result. A failure, for example because not all
/// kernels were launched, ends the update, except if the call was refused at once because of its stream (107000, 107003, 107017, 107027) or thread (107002).
fn update_continues(result: aclError) -> bool {
    use ascend_sys::codes::*;
    matches!(
        result,
        ACL_ERROR_RT_PARAM_INVALID
            | ACL_ERROR_RT_CONTEXT_NULL
            | ACL_ERROR_RT_STREAM_CONTEXT
            | ACL_ERROR_RT_INVALID_HANDLE
            | ACL_ERROR_RT_STREAM_CAPTURED
    )
}

/// Expands to the recorded call of one function. Takes the table's group, the function, the call, and its arguments as `[name argument]`.
macro_rules! observed {
    (launch $name:ident $call:ident [func $func:ident] [num_blocks $blocks:ident] $($rest:tt)*) => {
        call::launch(
            $call,
            || InterceptedLaunch { grid: $blocks, ..intercepted(Kind::Kernel, arg!(stream $($rest)*)) },
            || names::by_handle($func),
        )
    };
    (rt_model $name:ident $call:ident $model:tt [stream $stream:ident] $flag:tt) => {
        call::launch($call, || intercepted(Kind::Model, $stream), || Name::Unknown)
    };
    (rt_launch $name:ident $call:ident $($arg:tt)*) => {
        call::launch(
            $call,
            || InterceptedLaunch { grid: arg!(num_blocks $($arg)*), ..intercepted(Kind::Kernel, arg!(stream $($arg)*)) },
            || observed!(@name $($arg)*),
        )
    };
    (@name [stub $stub:ident] $($rest:tt)*) => { names::by_stub($stub) };
    (@name [func $func:ident] $($rest:tt)*) => { names::by_rt_handle($func) };
    (@name [handle $handle:ident] $($rest:tt)*) => { names::by_binary($handle) };
    (@name [op $op:ident] $($rest:tt)*) => { names::from_text($op) };
    (@name [kind $kind:ident] [op $op:ident] $($rest:tt)*) => { names::from_text($op) };
    (@name [so_name $so:ident] [kernel_name $kernel:ident] $($rest:tt)*) => { names::from_text($kernel.cast()) };
    (@name [names $names:ident] $($rest:tt)*) => { names::from_aicpu($names) };
    (@name $($arg:tt)*) => { Name::Unknown };

    (graph aclmdlRICaptureBegin $call:ident [stream $stream:ident] $mode:tt) => {
        call::observe_around($call, || (
            || observe::capture_begin($stream),
            |result| if result != 0 {
                observe::capture_end($stream, std::ptr::null_mut());
            },
        ))
    };
    (graph aclmdlRICaptureEnd $call:ident [stream $stream:ident] [model $model:ident]) => {
        call::observe_around($call, || (
            || (),
            |result| if !capture_continues(result) {
                observe::capture_end($stream, names::written_handle($model, result));
            },
        ))
    };
    (graph aclmdlRICaptureTaskUpdateBegin $call:ident [stream $stream:ident] $group:tt) => {
        call::observe_around($call, || (
            || observe::update_begin($stream),
            |result| if result != 0 {
                observe::update_end($stream);
            },
        ))
    };
    (graph aclmdlRICaptureTaskUpdateEnd $call:ident [stream $stream:ident]) => {
        call::observe_around($call, || (
            || (),
            |result| if !update_continues(result) {
                observe::update_end($stream);
            },
        ))
    };
    (graph aclmdlRIUpdate $call:ident $model:tt) => {
        call::wait($call, || Wait { not_timed: Some("graph_update"), ..Wait::new("graph") })
    };
    (graph aclmdlRIExecute $call:ident $model:tt $timeout:tt) => {
        call::wait($call, || Wait::new("graph"))
    };
    (graph aclmdlRIExecuteAsync $call:ident [model $model:ident] [stream $stream:ident]) => {
        call::launch($call, || intercepted(observe::replay($model), $stream), || Name::Unknown)
    };
    (graph aclmdlRIDestroy $call:ident [model $model:ident]) => {
        call::observe_before($call, || observe::graph_destroyed($model))
    };

    (model $name:ident $call:ident [model $model:ident] $input:tt $output:tt [stream $stream:ident] $($rest:tt)*) => {
        observed!(@model $name $call $stream)
    };
    (model aclmdlExecute $call:ident $($arg:tt)*) => {
        call::wait($call, || Wait::new("model"))
    };
    (model $name:ident $call:ident [op $op:ident] $($rest:tt)*) => {
        call::launch($call, || intercepted(Kind::Operator, arg!(stream $($rest)*)), || names::from_text($op))
    };
    (@model aclmdlExecuteV2 $call:ident $stream:ident) => {
        call::wait($call, || Wait { stream: Some($stream), ..Wait::new("model") })
    };
    (@model $name:ident $call:ident $stream:ident) => {
        call::launch($call, || intercepted(Kind::Model, $stream), || Name::Unknown)
    };

    (copy aclrtMemcpy $($rest:tt)*) => { observed!(@blocking aclrtMemcpy $($rest)*) };
    (copy aclrtMemset $($rest:tt)*) => { observed!(@blocking aclrtMemset $($rest)*) };
    (copy aclrtMemcpyBatch $($rest:tt)*) => { observed!(@blocking aclrtMemcpyBatch $($rest)*) };
    (@blocking $name:ident $call:ident $($arg:tt)*) => {
        call::wait($call, || Wait {
            bytes: Some(observed!(@copied $name $($arg)*)),
            ..Wait::new("memcpy")
        })
    };
    // Here the stream waits. A slice on it would count as work of the device.
    (copy aclrtValueWait $call:ident $memory:tt $value:tt $flag:tt [stream $stream:ident]) => {
        call::wait($call, || Wait { stream: Some($stream), ..Wait::new("sync") })
    };
    (copy $name:ident $call:ident $($arg:tt)*) => {
        call::launch(
            $call,
            || InterceptedLaunch {
                bytes: observed!(@copied $name $($arg)*),
                ..intercepted(Kind::Memcpy, arg!(stream $($arg)*))
            },
            || Name::Unknown,
        )
    };
    (@copied aclrtValueWrite $($arg:tt)*) => { size_of::<u64>() as u64 };
    (@copied aclrtMemcpyBatch $($arg:tt)*) => { traffic::total_bytes(arg!(sizes $($arg)*), arg!(size_count $($arg)*)) };
    (@copied aclrtMemcpyBatchAsync $($arg:tt)*) => { traffic::total_bytes(arg!(sizes $($arg)*), arg!(size_count $($arg)*)) };
    (@copied $name:ident $($arg:tt)*) => { arg!(count $($arg)*) as u64 };
    (host_func aclrtLaunchHostFunc $call:ident [stream $stream:ident] $($rest:tt)*) => {
        call::wait($call, || Wait { stream: Some($stream), ..Wait::new("sync") })
    };

    (collective $name:ident $call:ident $($arg:tt)*) => {
        call::launch(
            $call,
            || InterceptedLaunch {
                bytes: observed!(@bytes $name $($arg)*),
                ..intercepted(Kind::Collective, arg!(stream $($arg)*))
            },
            || Name::Unknown,
        )
    };
    (@bytes HcclBarrier $($arg:tt)*) => { 0 };
    (@bytes HcclAlltoAllV $($arg:tt)*) => { 0 }; // the sizes are in tables, possibly in device memory
    (@bytes HcclAlltoAllVC $($arg:tt)*) => { 0 };
    (@bytes HcclAlltoAll $send:tt [send_count $count:ident] [send_type $type:ident] $($rest:tt)*) => {
        traffic::bytes($count, $type)
    };
    (@bytes HcclBatchSendRecv [items $items:ident] [item_count $count:ident] $($rest:tt)*) => {
        traffic::bytes_of_items($items, $count)
    };
    (@bytes $name:ident $($arg:tt)*) => {
        traffic::bytes(arg!(count $($arg)*), arg!(data_type $($arg)*))
    };

    (naming aclrtBinaryGetFunction $call:ident $binary:tt [name $name:ident] [func $func:ident]) => {
        call::observe_after($call, || names::learn_handle($func, $name))
    };
    (naming aclrtBinaryGetFunctionByEntry $call:ident $binary:tt $entry:tt [func $func:ident]) => {
        call::observe_after($call, || names::forget_handle($func))
    };
    (naming rtFunctionRegister $call:ident $binary:tt [stub $stub:ident] [name $name:ident] $info:tt $mode:tt) => {
        call::observe_after($call, || names::learn_stub($stub, $name))
    };

    (naming rtRegisterAllKernel $call:ident [binary $binary:ident] [handle $handle:ident]) => {
        call::observe_after($call, || names::learn_binary($binary, $handle))
    };

    (lifecycle aclFinalize $call:ident) => {
        call::observe_before($call, observe::before_finalize)
    };
    (lifecycle aclrtSetDevice $call:ident $device:tt) => {
        call::wait($call, || Wait::new("device"))
    };
    (lifecycle $name:ident $call:ident [device $device:ident]) => {
        call::observe_before($call, || observe::before_reset($device))
    };
    (lifecycle $name:ident $call:ident [context $context:ident]) => {
        call::observe_around($call, || (
            || observe::before_context_destroyed($context),
            |result| if result == 0 {
                observe::context_destroyed($context);
            },
        ))
    };
    (lifecycle $name:ident $call:ident [stream $stream:ident]) => {
        call::observe_before($call, || observe::stream_destroyed($stream))
    };

    (synchronize $name:ident $call:ident [stream $stream:ident] $($rest:tt)*) => {
        call::wait($call, || Wait { stream: Some($stream), ..Wait::new("sync") })
    };
    (synchronize $name:ident $call:ident $($arg:tt)*) => {
        call::wait($call, || Wait::new("sync"))
    };

    (thread aclrtPeekAtLastError $call:ident [level $level:ident]) => {
        call::correct_result($call, |result| observe::last_error(result, $level, false))
    };
    (thread aclrtGetLastError $call:ident [level $level:ident]) => {
        call::correct_result($call, |result| observe::last_error(result, $level, true))
    };
    (thread aclrtGetThreadLastTaskId $call:ident [id $id:ident]) => {
        call::correct_output($call, || task::correct_id($id))
    };
    (rt_thread rtGetTaskIdAndStreamID $call:ident [task_id $task:ident] [stream_id $stream:ident]) => {
        call::correct_output($call, || task::correct($task, $stream))
    };

    (profiler aclprofStart $call:ident $config:tt) => {
        call::observe_around($call, || (
            || observe::profiler_started(PROFILER),
            |result| if result != 0 {
                observe::profiler_stopped(PROFILER);
            },
        ))
    };
    (profiler aclprofStop $call:ident $config:tt) => {
        call::observe_after($call, || observe::profiler_stopped(PROFILER))
    };

    (mstx mstxMarkA $call:ident [message $message:ident] [stream $stream:ident]) => {
        annotation::mark($call.real, None, $message, $stream)
    };
    (mstx mstxRangeStartA $call:ident [message $message:ident] [stream $stream:ident]) => {
        annotation::range_start($call.real, None, $message, $stream)
    };
    (mstx mstxRangeEnd $call:ident [range $range:ident]) => {
        annotation::range_end($call.real, $range)
    };
    (mstx mstxDomainCreateA $call:ident [name $name:ident]) => {
        annotation::domain::create($call.real, $name)
    };
    (mstx mstxDomainDestroy $call:ident [domain $domain:ident]) => {
        annotation::domain::destroy($call.real, $domain)
    };
    (mstx mstxDomainMarkA $call:ident [domain $domain:ident] [message $message:ident] [stream $stream:ident]) => {
        annotation::mark($call.real, Some($domain), $message, $stream)
    };
    (mstx mstxDomainRangeStartA $call:ident [domain $domain:ident] [message $message:ident] [stream $stream:ident]) => {
        annotation::range_start($call.real, Some($domain), $message, $stream)
    };
    (mstx mstxDomainRangeEnd $call:ident $domain:tt [range $range:ident]) => {
        annotation::range_end($call.real, $range)
    };
}

/// Wrappers of the functions in one table.
type List = &'static [Option<Hook>];

/// Defines the wrappers of each table and lists them. `$recorded` names what they record, if anything.
macro_rules! tables {
    ($($table:ident: $family:ident $group:ident $recorded:expr;)*) => {
        $(ascend_sys::$table! { hooks, $family $group })*

        /// All wrappers by table, with a name for what they record.
        pub(crate) static LISTS: &[(Option<&str>, List)] = &[$(($recorded, ascend_sys::$table! { listed })),*];
    };
}

tables! {
    for_each_launch: ACL launch Some("kernels");
    for_each_rt_launch: RT rt_launch Some("kernels");
    for_each_rt_model: RT rt_model Some("models");
    for_each_graph: ACL graph Some("graph replays");
    for_each_model: OPERATOR model Some("models");
    for_each_copy: ACL copy Some("copies");
    for_each_host_func: ACL host_func Some("waits");
    for_each_collective: HCCL collective Some("collectives");
    for_each_naming: ACL naming Some("kernel names");
    for_each_rt_naming: RT naming Some("kernel names");
    for_each_lifecycle: ACL lifecycle None;
    for_each_synchronize: ACL synchronize Some("waits");
    for_each_thread: ACL thread None;
    for_each_rt_thread: RT rt_thread None;
    for_each_profiler: PROFILER profiler None;
    for_each_mstx: MSTX mstx Some("annotations");
}

/// Returns the wrapper of the vendor function with this name, if there is one.
pub(crate) fn hook_of(name: &CStr) -> Option<&'static Hook> {
    let mut hooks = LISTS.iter().flat_map(|(_, list)| *list).flatten();
    hooks.find(|hook| hook.symbol.is_called(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_end_call_ends_the_capture_unless_it_was_refused_at_once() {
        let codes = [0, 107_026, 107_029, 107_038, 507_903];
        let expected = [false, false, true, true, false];
        assert_eq!(codes.map(capture_continues), expected);
        let codes = [0, 107_002, 107_033, 107_034];
        assert_eq!(codes.map(update_continues), [false, true, false, false]);
    }
}
