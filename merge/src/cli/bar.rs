//! The progress bar, for a merge that takes more than a second on a terminal.

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace_merge::Progress;

/// How long a merge may take without a bar.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);

/// What a merge counts, and the bar that may show it.
pub(crate) struct Bar {
    pub(crate) progress: Arc<Progress>,
    bar: ProgressBar,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Prepares a bar; none is shown if `quiet` or where stderr is no terminal.
    pub(crate) fn new(quiet: bool) -> Bar {
        let progress = Arc::new(Progress::default());
        let bar = ProgressBar::hidden().with_style(style());
        let shown = (!quiet && stderr().is_terminal()).then(|| {
            let (end, ended) = mpsc::channel();
            let (bar, progress) = (bar.clone(), progress.clone());
            let show = move || {
                let start = Instant::now();
                if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                draw(&bar, &progress, start.elapsed());
                bar.set_draw_target(ProgressDrawTarget::stderr());
                loop {
                    draw(&bar, &progress, start.elapsed());
                    if ended.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            };
            (end, std::thread::spawn(show))
        });
        Bar {
            progress,
            bar,
            shown,
        }
    }

    /// What takes the bar off the terminal.
    pub(crate) fn eraser(&self) -> impl FnOnce() + Send + 'static {
        let bar = self.bar.clone();
        move || bar.finish_and_clear()
    }

    /// Takes the bar away for good.
    pub(crate) fn end(self) {
        if let Some((end, thread)) = self.shown {
            drop(end);
            // A thread that panicked has shown why.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Plain characters and no colour where the user wants none.
fn style() -> ProgressStyle {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    // Whether there are colours is asked of stderr here, and of stdout by the library.
    let (bar, chars) = match is_plain {
        true => ("[{bar:12}]", "=> "),
        false => ("\u{1b}[36m{bar:12}\u{1b}[0m", "━╸─"),
    };
    let template = format!("{bar} {{percent:>3}}%, {{eta}} left: {{wide_msg}}");
    match ProgressStyle::with_template(&template) {
        Ok(style) => style.progress_chars(chars),
        Err(_) => ProgressStyle::default_bar(),
    }
}

fn draw(bar: &ProgressBar, progress: &Progress, elapsed: Duration) {
    let (done, total) = (progress.done_bytes(), progress.total_bytes());
    bar.set_length(total);
    bar.set_position(done);
    bar.set_message(message(done, total, progress.events(), elapsed));
}

fn message(done: u64, total: u64, events: u64, elapsed: Duration) -> String {
    let megabytes = u128::from(done) / elapsed.as_micros().max(1);
    // A narrow terminal cuts the end off.
    format!(
        "{megabytes} MB/s, {} of {}, {} events",
        HumanBytes(done),
        HumanBytes(total),
        HumanCount(events),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_far_it_is() {
        let text = message(3 << 30, 5 << 30, 21_345_678, Duration::from_secs(10));
        assert_eq!(text, "322 MB/s, 3.00 GiB of 5.00 GiB, 21,345,678 events");
        assert!(message(0, 0, 0, Duration::ZERO).contains("0 MB/s"));
    }
}
