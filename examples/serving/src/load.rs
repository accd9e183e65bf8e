//! The load: seeded prompts, sent as real HTTP requests with limited concurrency and rate.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sa_recorder::async_span;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::client::{self, Reply};
use crate::completion::CompletionRequest;
use crate::noise::Noise;
use crate::options::Options;

/// Time after which a request has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const WORDS: [&str; 24] = [
    "why", "is", "the", "server", "slow", "when", "many", "people", "ask", "it", "to", "explain",
    "a", "long", "story", "about", "river", "stone", "night", "and", "morning", "in", "two",
    "words",
];

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) index: usize,
    pub(crate) result: Result<Reply, String>,
}

/// The outcomes so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes(Arc<Mutex<Vec<Outcome>>>);

impl Outcomes {
    /// Returns the number of outcomes.
    pub(crate) fn len(&self) -> usize {
        self.list().len()
    }

    /// Removes and returns all outcomes.
    pub(crate) fn drain(&self) -> Vec<Outcome> {
        std::mem::take(&mut *self.list())
    }

    fn add(&self, outcome: Outcome) {
        self.list().push(outcome);
    }

    fn list(&self) -> MutexGuard<'_, Vec<Outcome>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends all requests as `tasks` and adds their outcomes when they finish. May be dropped at any point; the tasks then continue.
pub(crate) async fn drive(
    options: &Options,
    port: u16,
    outcomes: &Outcomes,
    tasks: &mut JoinSet<()>,
) {
    let slots = Arc::new(Semaphore::new(options.concurrency.get()));
    let start = Instant::now();
    for index in 0..options.requests.get() {
        sleep_until((start + arrival(index, options.rate)).into()).await;
        let Ok(permit) = Arc::clone(&slots).acquire_owned().await else {
            break;
        };
        let request = request(options, index);
        let outcomes = outcomes.clone();
        tasks.spawn(async move {
            outcomes.add(send(port, index, request).await);
            drop(permit);
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Returns the time from the start at which request `index` is sent. A rate of 0 means no limit.
fn arrival(index: usize, rate: f64) -> Duration {
    Duration::try_from_secs_f64(index as f64 / rate).unwrap_or(Duration::ZERO)
}

/// Returns the request with this index, which is the same for the same seed.
fn request(options: &Options, index: usize) -> CompletionRequest {
    let noise = Noise(options.seed).part(1000 + index as u64);
    let words =
        (0..6 + noise.below(0, 10) as u64).map(|word| WORDS[noise.below(1 + word, WORDS.len())]);
    let max_tokens = options.tokens.get();
    CompletionRequest {
        prompt: words.collect::<Vec<_>>().join(" "),
        max_tokens: max_tokens - noise.part(1).below(0, max_tokens.div_ceil(2)),
        stream: index.is_multiple_of(2),
    }
}

async fn send(port: u16, index: usize, request: CompletionRequest) -> Outcome {
    let mut span = async_span!(
        "client",
        "client.completions",
        index = index,
        max_tokens = request.max_tokens,
        stream = request.stream
    );
    let result = match timeout(REQUEST_TIMEOUT, client::complete(port, &request)).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())),
    };
    span.arg("ok", result.is_ok());
    Outcome { index, result }
}

/// Returns a hash of all texts. Equal runs have equal digests.
pub(crate) fn digest<'a>(outcomes: &'a [Outcome]) -> u64 {
    let text = |outcome: &'a Outcome| Some((outcome.index, &outcome.result.as_ref().ok()?.text));
    let mut texts: Vec<_> = outcomes.iter().filter_map(text).collect();
    texts.sort_unstable();
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    hasher.finish()
}
