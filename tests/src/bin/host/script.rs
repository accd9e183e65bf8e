//! A host that a test leads by the hand: one command a line on stdin, one line of answer on stdout.

use crate::switched::{self, Open};
use crate::work::{record, who};
use sa_recorder::Recorder;
use std::io::{BufRead, Write};

/// How long a forgotten child outlives its test.
const CHILD_LIFE_SECONDS: libc::c_uint = 120;

/// Answers commands until the end of stdin.
pub(crate) fn run() {
    let mut open = Open::default();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin is readable");
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["spans", label, count] => {
                record(label, crate::number(count));
                "recorded".to_owned()
            }
            ["parked", label, count] => {
                parked(label.to_owned(), crate::number(count));
                "recorded".to_owned()
            }
            ["large"] => {
                crate::odd::large();
                "recorded".to_owned()
            }
            ["who"] => who(),
            ["flush"] => {
                Recorder::get().flush();
                "flushed".to_owned()
            }
            ["start", dir] => crate::restarts::start(std::path::Path::new(dir)),
            ["exports"] => format!("{:?}", Recorder::get().exports()),
            ["finish"] => {
                Recorder::get().finish();
                "finished".to_owned()
            }
            ["peak-kib"] => crate::stack::status_kib("VmHWM:").to_string(),
            ["raw-fork"] => raw_fork().to_string(),
            ["fork-steady"] => switched::fork_steady().to_string(),
            ["steps", count] => {
                switched::steps(crate::number(count));
                "stepped".to_owned()
            }
            _ if open.obey(&words) => "obeyed".to_owned(),
            _ => format!("unknown command {line}"),
        };
        say(&answer);
    }
}

fn say(answer: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{answer}").expect("stdout is writable");
    stdout.flush().expect("stdout is writable");
}

/// Records on a thread of its own, which then sleeps.
fn parked(label: String, count: u64) {
    let (told, recorded) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        record(&label, count);
        let _ = told.send(());
        loop {
            std::thread::park();
        }
    });
    recorded.recv().expect("the thread records");
}

/// Forks past the C library, so that no fork handler runs; the child records nothing and keeps every descriptor.
fn raw_fork() -> libc::c_long {
    // SAFETY: flags of a plain fork, no new stack; the child only sleeps.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    assert!(pid >= 0, "clone succeeds");
    if pid == 0 {
        // SAFETY: alarm has no preconditions; it ends the child when the test forgot it.
        unsafe { libc::alarm(CHILD_LIFE_SECONDS) };
        loop {
            // SAFETY: pause has no preconditions.
            unsafe { libc::pause() };
        }
    }
    pid
}
