//! The seam to a device: what timing a launch needs of its runtime. `ascend` has the vendor's; another one would stand beside it.

pub(crate) mod absent;
pub(crate) mod stream_cache;
pub(crate) mod thread;

/// An error code of the runtime.
pub type Code = i32;

/// A stream, as the runtime hands it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub usize);

/// What a thread must have before it may use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(pub usize);

/// An event that takes the device's time when a stream reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event(pub usize);

/// A captured graph, or one that is being captured; 0 where it has no name yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Graph(pub usize);

/// A task as the runtime numbers it: its stream, and its id there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The stream's id.
    pub stream: u32,
    /// The task's.
    pub id: u32,
}

/// Where a device's clock stood, in ns since its power-on: in these ns or the `grain_ns` after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTime {
    /// The time read.
    pub ns: u64,
    /// What the clock is counted in.
    pub grain_ns: u64,
}

/// The runtime of a kind of device. Calls are made with the calling thread's context; none waits for a stream.
pub trait DeviceRuntime: Send + Sync {
    /// Whether no device is behind it.
    fn is_simulated(&self) -> bool;

    /// The calling thread's device, as the program counts its devices.
    ///
    /// # Errors
    ///
    /// The runtime's code, as for all calls of this trait.
    fn device(&self) -> Result<i32, Code>;

    /// The number of that device on its host.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn physical_device(&self, device: i32) -> Result<i32, Code>;

    /// The number by which the driver knows that device.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn logical_device(&self, device: i32) -> Result<i32, Code>;

    /// The calling thread's context.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn context(&self) -> Result<Context, Code>;

    /// Gives the calling thread a context.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn enter(&self, context: Context) -> Result<(), Code>;

    /// The number that every tool shows for a stream. The null stream is the context's default one.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn stream_id(&self, stream: Stream) -> Result<i32, Code>;

    /// The graph that a stream is being captured into, if it is.
    ///
    /// # Errors
    ///
    /// The runtime's code; also if this cannot be asked.
    fn capture(&self, stream: Stream) -> Result<Option<Graph>, Code>;

    /// Makes an event.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn create_event(&self) -> Result<Event, Code>;

    /// Gives an event back, whether a stream has reached it or not.
    fn destroy_event(&self, event: Event);

    /// Puts an event into a stream; it may have been in one before.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn record(&self, event: Event, stream: Stream) -> Result<(), Code>;

    /// Whether the stream has reached the event.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn is_complete(&self, event: Event) -> Result<bool, Code>;

    /// When the stream reached the event.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn timestamp(&self, event: Event) -> Result<DeviceTime, Code>;

    /// The time from one event to another, in ns; finer than the difference of their timestamps.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn elapsed_ns(&self, start: Event, end: Event) -> Result<i64, Code>;

    /// What the device's clock reads now, where that needs no stream.
    ///
    /// # Errors
    ///
    /// The runtime's code; also if this cannot be asked.
    fn clock(&self, device: i32) -> Result<DeviceTime, Code>;

    /// Makes a stream for nobody else.
    ///
    /// # Errors
    ///
    /// The runtime's code.
    fn create_stream(&self) -> Result<Stream, Code>;

    /// Gives it back.
    fn destroy_stream(&self, stream: Stream);

    /// The name of a kernel by its function handle.
    fn function_name(&self, function: usize) -> Option<String>;

    /// The name of an error code.
    fn code_name(&self, code: Code) -> Option<&'static str>;

    /// The code by which it says that it lacks a function.
    fn not_supported(&self) -> Code;

    /// The code of the calling thread's last call that failed, until that is forgotten; 0 for none.
    fn last_error(&self) -> Code;

    /// Forgets it.
    fn forget_last_error(&self);

    /// The calling thread's last task, if the runtime tells.
    fn last_task(&self) -> Option<Task>;

    /// Asks to be told, through [`crate::hooks`], of what takes streams, devices or the runtime itself away; whether it will tell of every
    /// stream that is made or goes.
    fn watch(&self) -> bool;

    /// Whether after this code no call for the device can succeed.
    fn is_lost(&self, code: Code) -> bool;
}
