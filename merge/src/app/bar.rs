//! The progress bar, for a merge that takes more than a second on a terminal.

use crate::Progress;
use indicatif::{
    HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle,
};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Time after which a merge shows a bar.
const DELAY: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);

/// Progress counters of a merge, and a bar on stderr that may show them.
#[derive(Debug)]
pub struct Bar {
    progress: Arc<Progress>,
    bar: ProgressBar,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Prepares a bar. It is not shown if `quiet` is set, if stderr is not a terminal, while the
    /// merge runs in the background, or if no thread can be created to draw it.
    pub fn new(quiet: bool) -> Bar {
        let progress = Arc::new(Progress::default());
        let bar = ProgressBar::hidden().with_style(style());
        let shown = (!quiet && stderr().is_terminal()).then(|| {
            let (end, ended) = mpsc::channel();
            let (bar, progress) = (bar.clone(), progress.clone());
            let drawing = Builder::new().spawn(move || show(&bar, &progress, &ended));
            Some((end, drawing.ok()?))
        });
        Bar {
            progress,
            bar,
            shown: shown.flatten(),
        }
    }

    /// Returns the counters for the merge.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns a function that removes the bar from the terminal.
    pub fn eraser(&self) -> impl FnOnce() + Send + 'static {
        let bar = self.bar.clone();
        move || erase(&bar)
    }

    /// Removes the bar for good.
    pub fn end(self) {
        if let Some((end, thread)) = self.shown {
            drop(end);
            // A thread that panicked has printed the reason.
            let _ = thread.join();
        }
        erase(&self.bar);
    }
}

/// Draws the bar, after some time, until the other end of `ended` is dropped.
fn show(bar: &ProgressBar, progress: &Progress, ended: &Receiver<()>) {
    let start = Instant::now();
    if ended.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    draw(bar, progress, start.elapsed());
    let mut is_hidden = true;
    loop {
        if is_in_foreground() {
            if is_hidden {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                is_hidden = false;
            }
            draw(bar, progress, start.elapsed());
        }
        if ended.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Returns true if this process may draw on the terminal. A background job would overwrite the
/// user's text, or be stopped. Without job control, as on a terminal that does not control this
/// process, it may.
fn is_in_foreground() -> bool {
    tcgetpgrp(stderr()).map_or(true, |group| group == getpgrp())
}

/// Removes the bar, if this process may still draw on the terminal.
fn erase(bar: &ProgressBar) {
    if !is_in_foreground() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.finish_and_clear();
}

/// Returns a style with plain characters and without colour if the user asked for that.
fn style() -> ProgressStyle {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    // We check stderr for colour support; the library would check stdout.
    let (bar, chars) = match is_plain {
        true => ("[{bar:12}]", "=> "),
        false => ("\u{1b}[36m{bar:12}\u{1b}[0m", "━╸─"),
    };
    match ProgressStyle::with_template(&format!("{bar} {{wide_msg}}")) {
        Ok(style) => style.progress_chars(chars),
        Err(_) => ProgressStyle::default_bar(),
    }
}

/// Draws all numbers at once. They are part of the message, because a change of one of the
/// library's own numbers draws at once, before the next one is changed.
fn draw(bar: &ProgressBar, progress: &Progress, elapsed: Duration) {
    let (done, total) = progress.bytes();
    bar.update(|state| {
        // A length of 0 would be a full bar.
        state.set_len(total.max(1));
        state.set_pos(done);
    });
    bar.set_message(message(done, total, progress.events(), elapsed));
}

fn message(done: u64, total: u64, events: u64, elapsed: Duration) -> String {
    if total == 0 {
        return "looking for fragments".to_owned();
    }
    let percent = u128::from(done) * 100 / u128::from(total);
    let megabytes = u128::from(done) / elapsed.as_micros().max(1);
    // A narrow terminal cuts off the end.
    format!(
        "{percent:>3}%, {} left: {megabytes} MB/s, {} of {}, {} events",
        remaining(done, total, elapsed),
        HumanBytes(done),
        HumanBytes(total),
        HumanCount(events),
    )
}

/// Estimates the remaining time from the average speed so far.
fn remaining(done: u64, total: u64, elapsed: Duration) -> String {
    if done == 0 {
        return "?".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "it is a guess")]
    let rest = (total - done) as f64 / done as f64;
    let left = Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest);
    left.map_or_else(
        |_| "?".to_owned(),
        |left| format!("{:#}", HumanDuration(left)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_progress_and_omit_unknown_values() {
        let text = message(3 << 30, 5 << 30, 21_345_678, Duration::from_secs(12));
        let expected = " 60%, 8s left: 268 MB/s, 3.00 GiB of 5.00 GiB, 21,345,678 events";
        assert_eq!(text, expected);
        let second = Duration::from_secs(1);
        assert_eq!(message(0, 0, 0, second), "looking for fragments");
        let expected = "  0%, ? left: 0 MB/s, 0 B of 5 B, 0 events";
        assert_eq!(message(0, 5, 0, second), expected);
        assert!(message(1, u64::MAX, 0, Duration::MAX).contains("? left"));
    }
}
