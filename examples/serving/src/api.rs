//! The HTTP API process, which serves OpenAI-style completions on the loopback interface, streamed or not.

mod llm_engine;
mod stream;

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use sa_recorder::async_span;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::completion::{
    COMPLETIONS_PATH, Completion, CompletionRequest, ErrorBody, FinishReason, Usage,
};
use crate::control::Control;
use crate::protocol::{OutputEvent, Status};
use crate::tokenizer;
use llm_engine::{AsyncLlmEngine, RequestHandle};

/// Maximum time that open connections may take to end after a stop.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum time that the remaining requests may then take to close their spans.
const ABANDON_GRACE: Duration = Duration::from_secs(2);

/// Serves HTTP on a free port of 127.0.0.1 until the launcher stops it. Reports the port to the launcher.
///
/// # Errors
///
/// If the engine core cannot be reached or the port cannot be bound.
pub(crate) fn serve(engine: &Path, control: &Control) -> io::Result<()> {
    let (stop, stopped) = oneshot::channel();
    control.on_stop(move || {
        let _ = stop.send(());
    })?;
    let engine = AsyncLlmEngine::start(engine)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("http")
        .enable_all()
        .build()?;
    let served = runtime.block_on(listen(Arc::clone(&engine), control, stopped));
    runtime.shutdown_timeout(ABANDON_GRACE);
    engine.stop();
    served
}

async fn listen(
    engine: Arc<AsyncLlmEngine>,
    control: &Control,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    // A streamed token must not wait until the client has acknowledged the previous one.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let (drain, draining) = oneshot::channel::<()>();
    let server = axum::serve(listener, router(engine)).with_graceful_shutdown(async {
        let _ = draining.await;
    });
    control.report(Status::Ready { port: Some(port) });
    tokio::select! {
        served = server => served,
        () = drain_after_stop(stopped, drain) => Ok(()),
    }
}

/// Waits for the stop, starts draining the server, and returns after the grace period.
async fn drain_after_stop(stopped: oneshot::Receiver<()>, drain: oneshot::Sender<()>) {
    let _ = stopped.await;
    let _ = drain.send(());
    tokio::time::sleep(GRACE).await;
}

fn router(engine: Arc<AsyncLlmEngine>) -> Router {
    Router::new()
        .route(COMPLETIONS_PATH, post(completions))
        .with_state(engine)
}

async fn completions(
    State(engine): State<Arc<AsyncLlmEngine>>,
    body: Result<Json<CompletionRequest>, JsonRejection>,
) -> Response {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return failure(rejection.status(), &rejection.body_text()),
    };
    let prompt = tokenizer::encode(&request.prompt);
    if prompt.is_empty() || request.max_tokens == 0 {
        let why = "prompt must contain a word, and max_tokens must be at least 1";
        return failure(StatusCode::BAD_REQUEST, why);
    }
    let id = engine.next_id();
    let span = async_span!(
        "request",
        "http.completions",
        request_id = id.as_str(),
        max_tokens = request.max_tokens,
        stream = request.stream
    );
    let prompt_tokens = prompt.len();
    match engine.add_request(&id, prompt, request.max_tokens) {
        Ok(handle) if request.stream => stream::respond(handle, span),
        Ok(handle) => {
            let response = collect(handle, prompt_tokens).await;
            drop(span);
            response
        }
        Err(error) => failure(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// Waits for all tokens and responds with the complete text.
async fn collect(mut handle: RequestHandle, prompt_tokens: usize) -> Response {
    let mut text = String::new();
    let mut completion_tokens = 0;
    loop {
        match handle.next().await {
            OutputEvent::Token(token) => {
                completion_tokens += 1;
                text.push_str(&tokenizer::decode(token));
            }
            OutputEvent::Finished => break,
            OutputEvent::Failed(reason) => {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, &reason);
            }
        }
    }
    let total_tokens = prompt_tokens + completion_tokens;
    let mut completion = Completion::new(handle.id(), text, Some(FinishReason::Length));
    completion.usage = Some(Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens,
    });
    Json(completion).into_response()
}

fn failure(status: StatusCode, why: &str) -> Response {
    let error = why.to_owned();
    (status, Json(ErrorBody { error })).into_response()
}
