//! Commands from the program's arguments, or from stdin line by line. Each line is answered by one line on stdout.

use crate::forks::{become_user, end_now, fork, fork_raw, reap};
use crate::open_spans::{OpenSpans, open_many};
use crate::work::{die, record, who};
use crate::{number, odd, restarts, sandbox, starved, switched};
use sa_recorder::{Args, AsyncSpan, Level, Recorder, SpanGuard, async_span, begin, end, span};
use std::mem::ManuallyDrop;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// An interpreter for commands, with the spans that they opened.
#[derive(Default)]
pub(crate) struct Script {
    guards: Vec<SpanGuard>,
    lanes: Vec<AsyncSpan>,
    all: Option<OpenSpans>,
}

impl Script {
    /// Executes commands separated by `, `. The child of a `fork` executes the commands after it, and so does the new thread of a `thread`.
    /// Returns the last answer. A command without a result answers with its own text.
    pub(crate) fn obey(&mut self, line: &str) -> String {
        let (command, rest) = line.split_once(", ").unwrap_or((line, ""));
        let words: Vec<&str> = command.split(' ').collect();
        let answer = match words[0] {
            "fork" => return self.fork(&words, rest),
            "thread" => return in_thread(&words, rest.to_owned()),
            _ => self.answer(&words),
        };
        if rest.is_empty() {
            answer.unwrap_or_else(|| command.to_owned())
        } else {
            self.obey(rest)
        }
    }

    /// Forks, with the bare system call if `raw`, and returns the child's pid. Waits for the child unless `beside` lets it run on.
    fn fork(&mut self, how: &[&str], rest: &str) -> String {
        let child = match how.contains(&"raw") {
            true => fork_raw(),
            false => fork(),
        };
        if child == 0 {
            self.obey(rest);
            end_now();
        }
        assert!(how.contains(&"beside") || reap(child), "the child's end");
        child.to_string()
    }

    fn answer(&mut self, words: &[&str]) -> Option<String> {
        match *words {
            ["spans", label, count] => record(label, number(count)),
            ["killed", label, count] => {
                record(label, number(count));
                die();
            }
            ["init"] => drop(Recorder::init()),
            ["umask", octal] => sandbox::set_umask(octal),
            ["limit", what, value] => sandbox::set_limit(what, number(value)),
            ["exit-on-term"] => sandbox::exit_on_term(),
            ["no-sequences"] => sandbox::refuse(libc::SYS_rseq, libc::ENOSYS),
            ["die"] => die(),
            ["exit"] => std::process::exit(crate::DONE.into()),
            ["exec", ref command @ ..] => {
                let program = std::env::current_exe().expect("the path of this program");
                panic!("{}", Command::new(program).args(command).exec());
            }
            ["sleep", ms] => thread::sleep(Duration::from_millis(number(ms))),
            ["user", uid] => become_user(uid.parse().expect("a uid")),
            ["beside-parent", label] => switched::beside_parent(label),
            ["steps", count] => switched::steps(number(count)),
            ["large"] => odd::large(),
            ["flush"] => Recorder::get().flush(),
            ["finish"] => Recorder::get().finish(),
            ["process-name", name] => Recorder::get().set_process_name(name),
            ["engine-settings", seqs] => {
                let settings = Args::new().with("max_num_seqs", number(seqs));
                Recorder::get().set_engine_settings(&settings);
            }
            ["thread-name", name] => Recorder::get().set_thread_name(name),
            ["who"] => return Some(who()),
            ["start", dir] => return Some(restarts::start(dir.as_ref())),
            ["exports"] => return Some(format!("{:?}", Recorder::get().exports())),
            ["rights"] => return Some(odd::rights()),
            ["starved", at] => return Some(starved::run(number(at))),
            ["merge", dir] => {
                let merged = trace_merge::merge(&trace_merge::Options::new([dir.into()]));
                if merged.is_err() {
                    std::process::exit(2);
                }
            }
            ["guard"] => self.guards.push(span!("open", "guard", number = 1)),
            ["guard-arg"] => {
                let guard = self.guards.last_mut().expect("an open guard");
                guard.arg("late", 2);
            }
            ["guard-end"] => drop(self.guards.pop()),
            ["lane"] => self.lanes.push(async_span!("open", "lane", number = 1)),
            ["lane-end"] => drop(self.lanes.pop()),
            ["begin", name] => begin(Level::E2e, "open", name),
            ["end", name] => end(&Args::new().with("ended_as", name)),
            ["open-all"] => self.all = Some(OpenSpans::open()),
            ["end-all"] => self.all.take().expect("open spans").end(),
            ["open-many", spans, requests] => open_many(number(spans), number(requests)),
            ["open-lanes"] => crate::lanes::open_some(),
            _ => crate::run(words),
        }
        None
    }
}

/// Executes commands on a new thread and leaves their spans open. The thread then ends, or sleeps forever if `parked`.
fn in_thread(how: &[&str], rest: String) -> String {
    let (answers, receiver) = channel();
    let is_parked = how.contains(&"parked");
    let work = move || {
        let mut script = ManuallyDrop::new(Script::default());
        answers
            .send(script.obey(&rest))
            .expect("the receiver exists");
        if is_parked {
            thread::sleep(Duration::MAX);
        }
    };
    let thread = thread::spawn(work);
    if !is_parked {
        thread.join().expect("no panic");
    }
    receiver.recv().expect("an answer")
}
