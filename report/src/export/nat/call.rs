//! The calls of a request.

use crate::export::call_span::CallKind;

/// A call, as NeMo Agent Toolkit sees a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) name: String,
    /// What joins its begin and its end.
    pub(super) uuid: String,
    /// The call that it was made from, by its number in the request.
    pub(super) parent: Option<usize>,
    pub(super) start_ns: i64,
    /// `None` if it has no end.
    pub(super) end_ns: Option<i64>,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

impl Call {
    /// From when to when it was, if it ended.
    pub(super) fn time(&self) -> Option<(i64, i64)> {
        Some((self.start_ns, self.end_ns?.max(self.start_ns)))
    }

    /// How long it was, if it ended.
    pub(super) fn dur_ns(&self) -> Option<i64> {
        self.time()
            .map(|(from_ns, to_ns)| to_ns.saturating_sub(from_ns))
    }

    /// Whether it is of a model or a tool. Functions only hold others.
    pub(super) fn is_work(&self) -> bool {
        self.kind != CallKind::Function
    }

    /// What it is counted as.
    pub(super) fn key(&self) -> String {
        format!("{}:{}", self.kind.word(), self.name)
    }
}
