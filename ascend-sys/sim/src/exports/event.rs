//! Events.

use super::*;
use crate::event::Event;
use std::sync::Arc;

/// All valid flags.
const FLAGS: u32 = ACL_EVENT_SYNC
    | ACL_EVENT_CAPTURE_STREAM_PROGRESS
    | ACL_EVENT_TIME_LINE
    | ACL_EVENT_DEVICE_USE_ONLY
    | ACL_EVENT_EXTERNAL
    | ACL_EVENT_IPC;

exports! { acl::event, code;
    fn aclrtCreateEventWithFlag(event: *mut aclrtEvent, flag: u32) {
        event.not_null()?;
        event.put(create(flag, false)?)
    }

    fn aclrtCreateEventExWithFlag(event: *mut aclrtEvent, flag: u32) {
        event.not_null()?;
        event.put(create(flag, true)?)
    }

    fn aclrtDestroyEvent(event: aclrtEvent) {
        context::current()?;
        runtime().events.remove(event.0).map(drop)
    }

    fn aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream) {
        record(event.0, stream.0)
    }

    fn aclrtResetEvent(event: aclrtEvent, stream: aclrtStream) {
        let stream = runtime().stream_here(stream.0)?;
        runtime().reset(&runtime().events.get(event.0)?, &stream)
    }

    fn aclrtQueryEventStatus(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) {
        status.put(recorded_status(event.0)?)
    }

    fn aclrtQueryEventWaitStatus(event: aclrtEvent, status: *mut aclrtEventWaitStatus) {
        status.put(match event_for_query(event.0)?.waits_are_over()? {
            true => ACL_EVENT_WAIT_STATUS_COMPLETE,
            false => ACL_EVENT_WAIT_STATUS_NOT_READY,
        })
    }

    fn aclrtEventElapsedTime(ms: *mut f32, start: aclrtEvent, end: aclrtEvent) {
        ms.put(elapsed_ms(start.0, end.0)?)
    }

    fn aclrtEventGetTimestamp(event: aclrtEvent, us: *mut u64) {
        us.put(timestamp_us(event.0)?)
    }
}

exports! { acl::synchronize, code;
    fn aclrtSynchronizeEvent(event: aclrtEvent) {
        context::here()?;
        runtime().events.get(event.0)?.synchronize()?;
        context::here().map(drop)
    }
}

fn create(flags: u32, ex: bool) -> Outcome<aclrtEvent> {
    let context = context::here()?;
    config().faults.check(Site::EventCreate)?;
    if flags == 0 || flags & !FLAGS != 0 {
        return Err(ACL_ERROR_RT_PARAM_INVALID);
    }
    Ok(runtime().new_event(&context, flags, ex).handle.pointer())
}

fn record(event: aclrtEvent, stream: aclrtStream) -> Outcome {
    let stream = runtime().stream_here(stream)?;
    let event = runtime().events.get(event)?;
    config().faults.check(Site::EventRecord)?;
    runtime().record(&event, &stream)
}

fn event_for_query(event: aclrtEvent) -> Outcome<Arc<Event>> {
    context::here()?;
    config().faults.check(Site::EventQuery)?;
    runtime().events.get(event)
}

fn recorded_status(event: aclrtEvent) -> Outcome<aclrtEventRecordedStatus> {
    Ok(match event_for_query(event)?.is_complete()? {
        true => ACL_EVENT_RECORDED_STATUS_COMPLETE,
        false => ACL_EVENT_RECORDED_STATUS_NOT_READY,
    })
}

fn elapsed_ms(start: aclrtEvent, end: aclrtEvent) -> Outcome<f32> {
    context::here()?;
    Event::elapsed_ms(&*runtime().events.get(start)?, &*runtime().events.get(end)?)
}

fn timestamp_us(event: aclrtEvent) -> Outcome<u64> {
    context::here()?;
    config().faults.check(Site::EventTimestamp)?;
    runtime().events.get(event)?.us()
}
