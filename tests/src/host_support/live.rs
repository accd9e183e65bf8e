//! A running host that a test controls: questions, commands, kills.

use super::host::{Outcome, finish, kill_group};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A running host, killed on drop.
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
            // The test may have stopped receiving. The lines are still part of stdout.
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

    /// Returns the pid of the started program, or of its wrapper if there is one.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line to the host's stdin.
    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").expect("the host reads its stdin");
    }

    /// Writes one line and returns the answer.
    ///
    /// # Panics
    /// If no answer comes before the deadline.
    pub fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.answer()
    }

    /// Waits for the next answer.
    ///
    /// # Panics
    /// If no answer comes before the deadline.
    pub fn answer(&mut self) -> String {
        let answer = self.answers.recv_timeout(self.deadline);
        answer.unwrap_or_else(|_| panic!("no answer within {:?}", self.deadline))
    }

    /// Returns the number of threads in the host.
    pub fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid())).map_or(0, Iterator::count)
    }

    /// Returns what the host's recorder reports about itself.
    pub fn who(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.ask("who")).expect("an answer in JSON")
    }

    /// Closes the host's stdin and waits for it to end.
    pub fn end(mut self) -> Outcome {
        self.stdin = None;
        let stdout = self.stdout.take().expect("taken once");
        finish(&mut self.child, stdout, self.deadline)
    }

    /// Kills this process only, not its children, with SIGKILL, and reaps it.
    pub fn kill(mut self) -> u32 {
        self.child.kill().expect("the host is alive");
        self.child.wait().expect("the host can be waited for");
        self.stdout = None;
        self.child.id()
    }

    /// Ends the host with SIGTERM, which it does not handle.
    ///
    /// # Panics
    /// If the host survives.
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
