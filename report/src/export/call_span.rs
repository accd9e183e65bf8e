//! A span of an agent.

use super::count;
use crate::gather::request_moment::ids;
use serde::Serialize;
use trace_merge::events::PlacedEvent;

/// What a span of an agent is of: its category, and the word that NeMo Agent Toolkit has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum CallKind {
    Function,
    Llm,
    Tool,
}

impl CallKind {
    /// That of a category.
    pub(super) fn of(category: &str) -> Option<CallKind> {
        match category {
            "function" => Some(CallKind::Function),
            "llm" => Some(CallKind::Llm),
            "tool" => Some(CallKind::Tool),
            _ => None,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            CallKind::Function => "FUNCTION",
            CallKind::Llm => "LLM",
            CallKind::Tool => "TOOL",
        }
    }
}

/// A span of the category `function`, `llm` or `tool`, with the id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallSpan {
    pub(super) request: String,
    pub(super) kind: CallKind,
    pub(super) name: String,
    /// Its own id, and that of the span it was called from, where args name them.
    pub(super) id: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) start_ns: i64,
    /// `None` if it has no end.
    pub(super) end_ns: Option<i64>,
    pub(super) tokens: CallTokens,
}

/// The tokens that args name: of the prompt, those of them that a cache had, and of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTokens {
    pub(super) prompt: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) completion: Option<u64>,
}

impl CallTokens {
    pub(super) fn of(event: &PlacedEvent<'_>) -> CallTokens {
        CallTokens {
            prompt: count(event, "prompt_tokens"),
            cached: count(event, "cached_tokens"),
            completion: count(event, "completion_tokens").or_else(|| count(event, "output_tokens")),
        }
    }

    /// These, and of others what these do not know.
    pub(super) fn or(self, others: CallTokens) -> CallTokens {
        CallTokens {
            prompt: self.prompt.or(others.prompt),
            cached: self.cached.or(others.cached),
            completion: self.completion.or(others.completion),
        }
    }
}

impl CallSpan {
    /// That of an event, if it is one.
    pub(super) fn of(event: &PlacedEvent<'_>, name: &str) -> Option<CallSpan> {
        let kind = CallKind::of(&event.category())?;
        let [request] = ids(event).try_into().ok()?;
        let text = |name| serde_json::from_slice::<String>(event.arg(name)?).ok();
        Some(CallSpan {
            request,
            kind,
            name: name.to_owned(),
            id: text("span_id"),
            parent: text("parent_id"),
            start_ns: event.ts_ns,
            end_ns: event.end_ns().filter(|_| !event.is_unfinished()),
            tokens: CallTokens::of(event),
        })
    }
}
