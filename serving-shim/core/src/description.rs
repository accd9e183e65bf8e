//! The caller's description of a launch.

use crate::runtime::{Graph, Stream};
use sa_recorder::Value;
use std::borrow::Cow;

/// The kind of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel.
    Kernel,
    /// An operator, which the runtime runs as kernels.
    Operator,
    /// A compiled model.
    Model,
    /// A captured graph, replayed as a whole.
    Graph(Graph),
    /// A collective.
    Collective,
    /// A copy.
    Memcpy,
}

impl Kind {
    /// Returns the category that spans of this kind of launch have in the trace.
    pub(crate) fn category(self) -> &'static str {
        match self {
            Kind::Kernel | Kind::Operator => "kernel",
            Kind::Model => "model",
            Kind::Graph(_) => "graph",
            Kind::Collective => "comm",
            Kind::Memcpy => "memcpy",
        }
    }

    /// Returns true if launches of this kind are so frequent that timing a sample of them is enough.
    pub(crate) fn is_eager(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Operator | Kind::Memcpy)
    }
}

/// The name of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// The name that the trace shows. A borrowed one allocates nothing: some hosts wait, and so may launch, in signal handlers.
    pub shown: Cow<'static, str>,
    /// The runtime's name, if it differs.
    pub raw: Option<String>,
}

impl<T: Into<Cow<'static, str>>> From<T> for Name {
    fn from(shown: T) -> Name {
        Name {
            shown: shown.into(),
            raw: None,
        }
    }
}

/// The description of a launch before it is made.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) kind: Kind,
    pub(crate) name: Name,
    pub(crate) stream: Stream,
    /// Number of blocks, or 0 for none.
    pub(crate) grid: u32,
    /// Number of bytes moved, or 0 for none.
    pub(crate) bytes: u64,
}

impl Description {
    /// Calls `add` with the key and the value of each arg that describes the launch, such as `grid`.
    pub(crate) fn args(&self, mut add: impl FnMut(&str, &dyn Value)) {
        if let Some(raw) = &self.name.raw {
            add("kernel", raw);
        }
        if self.grid > 0 {
            add("grid", &self.grid);
        }
        if self.bytes > 0 {
            add("bytes", &self.bytes);
        }
    }
}
