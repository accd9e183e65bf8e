//! The extension of the Python package `sa_profile`: the recorder for Python.
//!
//! **Data flow.** A call's keywords become JSON text at once (`scratch`, `value`). Its name finds the text that all events of that name share (`names`).
//! A span begins and ends on the lane of the running code (`lane`), which is the thread or the asyncio task (`task`, `tasks`). The recorder does the
//! rest.
//!
//! **Locks.** No code of Python runs while a lock of ours is held, since it could come back here. The interpreter's own lock is held throughout,
//! except while files are written.
#![expect(
    unsafe_code,
    reason = "asks the interpreter what pyo3 has no safe call for"
)]

mod async_span;
mod attached;
mod call;
mod configuration;
mod copies;
mod engine;
mod event;
mod interpreter;
mod lane;
mod launch;
mod merge;
mod names;
mod point;
mod process;
mod profile;
mod scratch;
mod session;
mod span;
mod start;
mod task;
mod tasks;
mod value;

use pyo3::pymodule;

// `attached` stands on it.
#[pymodule(gil_used = true)]
mod _sa_profile {
    use pyo3::prelude::*;
    use pyo3::types::PyList;

    use crate::copies;

    #[pymodule_export]
    use crate::async_span::{AsyncSpan, Request, async_span, request};
    #[pymodule_export]
    use crate::call::misuse::set_misuse;
    #[pymodule_export]
    use crate::configuration::configuration;
    #[pymodule_export]
    use crate::engine::front::{FrontRequest, FrontRequests};
    #[pymodule_export]
    use crate::engine::http::exchange::{Exchange, begin_exchange};
    #[pymodule_export]
    use crate::engine::http::message_begin;
    #[pymodule_export]
    use crate::engine::ids::Ids;
    #[pymodule_export]
    use crate::engine::outputs::{Outputs, Tally, last_number};
    #[pymodule_export]
    use crate::engine::stamps::of_monotonic;
    #[pymodule_export]
    use crate::engine::step::{Step, count_step};
    #[pymodule_export]
    use crate::interpreter::calls::{
        function_returned, function_started, function_unwound, set_judge, track_code, watch_root,
        watch_task_maker,
    };
    #[pymodule_export]
    use crate::interpreter::garbage::Collections;
    #[pymodule_export]
    use crate::interpreter::imports::{tell_imports, watch_imports};
    #[pymodule_export]
    use crate::interpreter::lives::set_root_watch;
    #[pymodule_export]
    use crate::interpreter::sampling::{
        after_fork_in_parent, before_fork, begin_sampling, end_sampling, sample_in_child,
    };
    #[pymodule_export]
    use crate::interpreter::several::is_main_interpreter;
    #[pymodule_export]
    use crate::launch::{Launch, launch_timed, launch_walls};
    #[pymodule_export]
    use crate::merge::{merge, merge_report};
    #[pymodule_export]
    use crate::point::{counter, duration, flow, instant, thread_duration};
    #[pymodule_export]
    use crate::process::{
        after_fork_in_child, announce, attach, directory, dropped, flush, fragment, is_enabled,
        is_main, levels, now_ns, run, set_process_name, set_thread_name, trace,
    };
    #[pymodule_export]
    use crate::profile::{dict_duration, dict_instant, metadata};
    #[pymodule_export]
    use crate::session::{
        close, exports, finish, is_privileged, is_to_begin, is_under_way, new_run_id, recording,
        session, start_with,
    };
    #[pymodule_export]
    use crate::span::nothing::Nothing;
    #[pymodule_export]
    use crate::span::off::{is_off_e2e, is_off_kernel, is_off_verbose};
    #[pymodule_export]
    use crate::span::open::{OpenSpan, open_span};
    #[pymodule_export]
    use crate::span::{Span, begin, dict_span, end, set_decorator, span};
    #[pymodule_export]
    use crate::task::name_coroutines;

    /// Makes the module offer what the first one of the process does, if there is one.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if !copies::adopt(module)? {
            crate::session::note_variables();
            // Drop-in modules: each copy of the package adds its own.
            module.add("recorders", PyList::empty(module.py()))?;
            copies::offer(module)?;
        }
        Ok(())
    }
}
