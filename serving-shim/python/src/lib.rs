//! The native extension of the Python package `sa_profile`: the recorder for Python.
//!
//! **Data flow.** A call's keywords are encoded to JSON text at once (`scratch`, `value`). All events of one name share an interned text (`names`).
//! A span begins and ends on the lane of the running code (`lane`): the thread or the asyncio task (`task`, `tasks`). The recorder does the
//! rest.
//!
//! **Locks.** No Python code runs while one of our locks is held, because it could call back into this library. The GIL is held throughout,
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
mod hook_file;
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
mod task;
mod tasks;
mod thread_setup;
mod value;

use pyo3::pymodule;

// `attached` relies on the GIL.
#[pymodule(gil_used = true)]
mod _sa_profile {
    use pyo3::prelude::*;
    use pyo3::types::PyList;

    use crate::copies;

    #[pymodule_export]
    use crate::{
        async_span::{AsyncSpan, Request, async_span, request},
        configuration::configuration,
        engine::{
            front::{FrontRequest, FrontRequests},
            http::{
                exchange::{Exchange, begin_exchange},
                message_begin,
            },
            ids::{RequestIds, request_ids},
            layout::OutputLayout,
            outputs::{OutputCounter, OutputCounts, last_request_number},
            stamps::{from_monotonic, from_wall_clock},
            step::{Step, record_step_counters},
        },
        hook_file::{is_version_between, read_hooks},
        interpreter::{
            calls::{
                function_returned, function_started, function_unwound, set_code_filter, track_code,
                watch_task_coroutine, watch_task_creator,
            },
            garbage::CollectionSpans,
            imports::{add_import_listener, watch_imports},
            sampling::{
                after_fork_in_parent, before_fork, begin_sampling, end_sampling,
                restart_sampling_in_child,
            },
            subinterpreters::is_main_interpreter,
            task_spans::set_coroutine_watcher,
        },
        launch::{Launch, launch_timed, launch_walls},
        merge::{merge, merge_report},
        point::{counter, duration, flow, instant, record_since, thread_duration},
        process::{
            after_fork_in_child, announce, attach, directory, dropped, engine_settings, flush,
            fragment, is_enabled, is_main, levels, now_ns, run, set_process_name, set_thread_name,
            trace,
        },
        profile::{dict_duration, dict_instant, metadata},
        session::{
            close, current_fragment, exports, finish, is_pending, is_privileged, is_under_way,
            new_run_id, session, start_recording,
        },
        span::{
            Span, begin, dict_span, end,
            null_span::NullSpan,
            off::{is_off_e2e, is_off_kernel, is_off_verbose},
            open::{OpenSpan, open_span},
            set_decorator, span,
        },
        task::name_coroutines,
    };

    /// Initialises this Python module. It shares the contents of the first copy that the process has loaded, or becomes that copy.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if !copies::adopt(module)? {
            crate::session::store_request();
            // Modules of the drop-in: each copy of the package adds its own.
            module.add("recorders", PyList::empty(module.py()))?;
            copies::offer(module)?;
        }
        Ok(())
    }
}
