//! The part of the OpenAI completions format that the API process and the load client use.

use serde::{Deserialize, Serialize};

/// The model's name.
pub(crate) const MODEL: &str = "demo-tp";
/// The URL path for completions.
pub(crate) const COMPLETIONS_PATH: &str = "/v1/completions";
/// Data of the last event of a stream.
pub(crate) const DONE: &str = "[DONE]";

/// Body of a completion request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompletionRequest {
    pub(crate) prompt: String,
    #[serde(default = "default_max_tokens")]
    pub(crate) max_tokens: usize,
    #[serde(default)]
    pub(crate) stream: bool,
}

fn default_max_tokens() -> usize {
    16
}

/// Body of a response, and of each event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Completion {
    pub(crate) id: String,
    pub(crate) object: String,
    pub(crate) model: String,
    pub(crate) choices: Vec<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// The reason if a stream ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Completion {
    /// Creates a completion with one choice.
    pub(crate) fn new(id: &str, text: String, finish_reason: Option<FinishReason>) -> Completion {
        Completion {
            id: id.to_owned(),
            object: "text_completion".to_owned(),
            model: MODEL.to_owned(),
            choices: vec![Choice {
                index: 0,
                text,
                finish_reason,
            }],
            usage: None,
            error: None,
        }
    }
}

/// One completion of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    pub(crate) text: String,
    pub(crate) finish_reason: Option<FinishReason>,
}

/// The reason for the end of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FinishReason {
    /// All requested tokens were generated.
    Length,
    /// The server could not continue.
    Error,
}

impl FinishReason {
    /// Returns the name in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FinishReason::Length => "length",
            FinishReason::Error => "error",
        }
    }
}

/// Numbers of tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: usize,
    pub(crate) completion_tokens: usize,
    pub(crate) total_tokens: usize,
}

/// Body of a response with an error status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ErrorBody {
    /// The reason.
    pub(crate) error: String,
}
