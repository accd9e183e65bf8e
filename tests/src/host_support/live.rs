//! A running host that a test leads: gates, commands, kills.

use super::host::{Outcome, finish, kill_group};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A host that runs; it is killed when the test lets go of it.
pub struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    stdout: Option<JoinHandle<String>>,
    deadline: Duration,
}

impl Live {
    pub(super) fn new(mut child: Child, deadline: Duration) -> Live {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, answers) = channel();
        let stdout = thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            let lines = lines.map(|line| line.expect("stdout is UTF-8"));
            // The test may not be listening any more; the lines count all the same.
            let all = lines.inspect(|line| drop(sender.send(line.clone())));
            all.map(|line| line + "\n").collect()
        });
        Live {
            child,
            stdin,
            answers,
            stdout: Some(stdout),
            deadline,
        }
    }

    /// The pid of the started program (of the wrapper, where there is one).
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line to its stdin.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").expect("the host reads its stdin");
    }

    /// Writes one line and waits for the line of answer.
    ///
    /// # Panics
    /// When no answer comes before the deadline.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }

    /// Waits for the next line of answer.
    ///
    /// # Panics
    /// When none comes before the deadline.
    pub fn answer(&mut self) -> String {
        let answer = self.answers.recv_timeout(self.deadline);
        answer.unwrap_or_else(|_| panic!("no answer within {:?}", self.deadline))
    }

    /// The number of its threads.
    pub fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid())).map_or(0, Iterator::count)
    }

    /// What the host says of itself.
    pub fn who(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.ask("who")).expect("an answer in JSON")
    }

    /// Closes its stdin and waits for its end.
    pub fn end(mut self) -> Outcome {
        self.stdin = None;
        let stdout = self.stdout.take().expect("taken once");
        finish(&mut self.child, stdout, self.deadline)
    }

    /// Kills the one process with SIGKILL, not what it started, and reaps it.
    pub fn kill(mut self) -> u32 {
        self.child.kill().expect("the host is alive");
        self.child.wait().expect("the host can be waited for");
        self.stdout = None;
        self.child.id()
    }

    /// Ends it by SIGTERM, for which it has no handler.
    ///
    /// # Panics
    /// When that does not end it.
    pub fn terminate(self) -> Outcome {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill starts").success());
        self.end()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.stdout.is_some() {
            kill_group(&mut self.child);
        }
    }
}
