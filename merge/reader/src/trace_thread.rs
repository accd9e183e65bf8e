//! A thread of the trace, as consumers see it.

/// A thread, a lane of async work, or a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceThread {
    /// Its process, by its number among `TraceEvents::processes`.
    pub process: usize,
    /// Its id in the trace.
    pub tid: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Whether it is the main thread of its process.
    pub is_main: bool,
    /// Whether it is no thread of the system: a lane of async work, or a track such as a stream of a device.
    pub is_lane: bool,
    /// The ids in the trace of the rows beside it, for spans that overlap others of it.
    pub rows: Vec<u32>,
}

impl TraceThread {
    /// What people call it: its name, or its id.
    pub fn label(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| format!("tid {}", self.tid))
    }
}
