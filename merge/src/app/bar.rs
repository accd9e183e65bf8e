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

/// How long a merge may take without a bar.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);

/// What a merge counts, and the bar on stderr that may show it.
#[derive(Debug)]
pub struct Bar {
    progress: Arc<Progress>,
    bar: ProgressBar,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Prepares a bar; none is shown if `quiet`, where stderr is no terminal, while the merge is in its background, or where no thread is left to draw it.
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

    /// What the merge is to count in.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What takes the bar off the terminal.
    pub fn eraser(&self) -> impl FnOnce() + Send + 'static {
        let bar = self.bar.clone();
        move || erase(&bar)
    }

    /// Takes the bar away for good.
    pub fn end(self) {
        if let Some((end, thread)) = self.shown {
            drop(end);
            // A thread that panicked has shown why.
            let _ = thread.join();
        }
        erase(&self.bar);
    }
}

/// Draws, after some time, until `ended` says so.
fn show(bar: &ProgressBar, progress: &Progress, ended: &Receiver<()>) {
    let start = Instant::now();
    if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
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

/// Whether the terminal is this process's to draw on: a job in the background would write over its user's words, or be stopped. Where there
/// are no jobs, as on a terminal that does not control this process, it is.
fn is_in_foreground() -> bool {
    tcgetpgrp(stderr()).map_or(true, |group| group == getpgrp())
}

/// Takes the bar away, if the terminal still shows it to this process's user.
fn erase(bar: &ProgressBar) {
    if !is_in_foreground() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.finish_and_clear();
}

/// Plain characters and no colour where the user wants none.
fn style() -> ProgressStyle {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    // Whether there are colours is asked of stderr here, and of stdout by the library.
    let (bar, chars) = match is_plain {
        true => ("[{bar:12}]", "=> "),
        false => ("\u{1b}[36m{bar:12}\u{1b}[0m", "━╸─"),
    };
    match ProgressStyle::with_template(&format!("{bar} {{wide_msg}}")) {
        Ok(style) => style.progress_chars(chars),
        Err(_) => ProgressStyle::default_bar(),
    }
}

/// All numbers are of one moment and in the message: a change of the library's own ones draws at once, before the next is changed.
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
    // A narrow terminal cuts the end off.
    format!(
        "{percent:>3}%, {} left: {megabytes} MB/s, {} of {}, {} events",
        left(done, total, elapsed),
        HumanBytes(done),
        HumanBytes(total),
        HumanCount(events),
    )
}

/// The time for the rest at the pace so far.
fn left(done: u64, total: u64, elapsed: Duration) -> String {
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
    fn says_how_far_it_is_and_nothing_that_it_does_not_know() {
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
