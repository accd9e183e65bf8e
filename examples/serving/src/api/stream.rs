//! Streamed responses: one server-sent event for each token, one for the finish reason, and the last one, `[DONE]`.

use std::convert::Infallible;

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use sa_recorder::{AsyncSpan, async_span, instant};

use super::llm_engine::RequestHandle;
use crate::completion::{Completion, DONE, FinishReason};
use crate::protocol::OutputEvent;
use crate::tokenizer;

/// An open stream. Its spans end with it, even if the client disconnects.
struct Streaming {
    handle: RequestHandle,
    next: Next,
    _stream_span: AsyncSpan,
    _request_span: AsyncSpan,
}

/// The next event of a stream.
enum Next {
    Token,
    Done,
    End,
}

/// Responds with the stream of a request's tokens. `request_span` stays open as long as the stream.
pub(super) fn respond(handle: RequestHandle, request_span: AsyncSpan) -> Response {
    let stream_span = async_span!(
        "request",
        "http.stream_completion",
        request_id = handle.id()
    );
    let streaming = Streaming {
        handle,
        next: Next::Token,
        _stream_span: stream_span,
        _request_span: request_span,
    };
    Sse::new(stream::unfold(streaming, advance)).into_response()
}

async fn advance(mut streaming: Streaming) -> Option<(Result<Event, Infallible>, Streaming)> {
    let data = match streaming.next {
        Next::Token => streaming.chunk().await,
        Next::Done => {
            streaming.next = Next::End;
            DONE.to_owned()
        }
        Next::End => return None,
    };
    Some((Ok(Event::default().data(data)), streaming))
}

impl Streaming {
    /// Returns the JSON of the next token, or of the last chunk with the finish reason.
    async fn chunk(&mut self) -> String {
        let event = self.handle.next().await;
        let completion = match event {
            OutputEvent::Token(token) => {
                Completion::new(self.handle.id(), tokenizer::decode(token), None)
            }
            OutputEvent::Finished => self.finish(FinishReason::Length),
            OutputEvent::Failed(reason) => {
                let mut last = self.finish(FinishReason::Error);
                last.error = Some(reason);
                last
            }
        };
        serde_json::to_string(&completion).unwrap_or_default()
    }

    fn finish(&mut self, reason: FinishReason) -> Completion {
        self.next = Next::Done;
        instant!(
            "request",
            "http.stream_completion.finished",
            request_id = self.handle.id(),
            finish_reason = reason.as_str()
        );
        Completion::new(self.handle.id(), String::new(), Some(reason))
    }
}
