//! What the caller says of a launch.

use crate::runtime::{Graph, Stream};
use std::borrow::Cow;

/// What is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel.
    Kernel,
    /// An operator that the runtime makes kernels of.
    Operator,
    /// A model that was compiled beforehand.
    Model,
    /// A captured graph, replayed as a whole.
    Graph(Graph),
    /// A collective.
    Collective,
    /// A copy.
    Memcpy,
}

impl Kind {
    /// The category of its spans.
    pub(crate) fn category(self) -> &'static str {
        match self {
            Kind::Kernel | Kind::Operator => "kernel",
            Kind::Model => "model",
            Kind::Graph(_) => "graph",
            Kind::Collective => "comm",
            Kind::Memcpy => "memcpy",
        }
    }

    /// Whether it is launched so often that a part is enough.
    pub(crate) fn is_eager(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Operator | Kind::Memcpy)
    }
}

/// What a launch is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// As the trace shows it. One that is borrowed allocates nothing: some hosts wait, and so may launch, in signal handlers.
    pub shown: Cow<'static, str>,
    /// As the runtime has it, if that is something else.
    pub raw: Option<String>,
}

impl From<&'static str> for Name {
    fn from(shown: &'static str) -> Name {
        Name {
            shown: shown.into(),
            raw: None,
        }
    }
}

impl From<String> for Name {
    fn from(shown: String) -> Name {
        Name {
            shown: shown.into(),
            raw: None,
        }
    }
}

/// What is known of a launch before it is made.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) kind: Kind,
    pub(crate) name: Name,
    pub(crate) stream: Stream,
    /// Blocks; 0 for none.
    pub(crate) grid: u32,
    /// Bytes moved; 0 for none.
    pub(crate) bytes: u64,
}
