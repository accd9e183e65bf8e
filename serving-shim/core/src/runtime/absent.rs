//! No device runtime: launches are recorded on the host alone.

use crate::runtime::{Code, Context, DeviceRuntime, DeviceTime, Event, Graph, Stream, Task};

/// Refuses everything.
pub(crate) struct Absent;

const NONE: Code = -1;

impl DeviceRuntime for Absent {
    fn is_simulated(&self) -> bool {
        false
    }
    fn device(&self) -> Result<i32, Code> {
        Err(NONE)
    }
    fn physical_device(&self, _: i32) -> Result<i32, Code> {
        Err(NONE)
    }
    fn logical_device(&self, _: i32) -> Result<i32, Code> {
        Err(NONE)
    }
    fn context(&self) -> Result<Context, Code> {
        Err(NONE)
    }
    fn enter(&self, _: Context) -> Result<(), Code> {
        Err(NONE)
    }
    fn stream_id(&self, _: Stream) -> Result<i32, Code> {
        Err(NONE)
    }
    fn capture(&self, _: Stream) -> Result<Option<Graph>, Code> {
        Err(NONE)
    }
    fn create_event(&self) -> Result<Event, Code> {
        Err(NONE)
    }
    fn destroy_event(&self, _: Event) {}
    fn record(&self, _: Event, _: Stream) -> Result<(), Code> {
        Err(NONE)
    }
    fn is_complete(&self, _: Event) -> Result<bool, Code> {
        Err(NONE)
    }
    fn timestamp(&self, _: Event) -> Result<DeviceTime, Code> {
        Err(NONE)
    }
    fn elapsed_ns(&self, _: Event, _: Event) -> Result<i64, Code> {
        Err(NONE)
    }
    fn clock(&self, _: i32) -> Result<DeviceTime, Code> {
        Err(NONE)
    }
    fn create_stream(&self) -> Result<Stream, Code> {
        Err(NONE)
    }
    fn destroy_stream(&self, _: Stream) {}
    fn function_name(&self, _: usize) -> Option<String> {
        None
    }
    fn code_name(&self, _: Code) -> Option<&'static str> {
        None
    }
    fn not_supported(&self) -> Code {
        NONE
    }
    fn last_error(&self) -> Code {
        0
    }
    fn forget_last_error(&self) {}
    fn last_task(&self) -> Option<Task> {
        None
    }
    fn watch(&self) -> bool {
        false
    }
    fn is_lost(&self, _: Code) -> bool {
        false
    }
}
