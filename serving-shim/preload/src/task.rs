//! The calling thread's last task. If the real function returns the task of one of our events, the host gets its own last task instead.

use serving_shim::hooks::{last_task, last_task_id};
use serving_shim::runtime::Task;

/// Corrects the task and stream ids that `rtGetTaskIdAndStreamID` has written, to the ones that the host would get without our events.
pub(crate) fn correct(id: *mut u32, stream: *mut u32) {
    // SAFETY: the host's own argument, which the real function has just written to.
    let real_id = unsafe { id.read() };
    // SAFETY: as above.
    let real_stream = unsafe { stream.read() };
    let real = Task {
        stream: real_stream,
        id: real_id,
    };
    let shown = last_task(real);
    if shown != real {
        // SAFETY: as above.
        unsafe { id.write(shown.id) };
        // SAFETY: as above.
        unsafe { stream.write(shown.stream) };
    }
}

/// Corrects the task id that `aclrtGetThreadLastTaskId` has written, to the one that the host would get without our events.
pub(crate) fn correct_id(id: *mut u32) {
    // SAFETY: the host's own argument, which the real function has just written to.
    let real = unsafe { id.read() };
    let shown = last_task_id(real);
    if shown != real {
        // SAFETY: as above.
        unsafe { id.write(shown) };
    }
}
