//! How processes ended, and which process of a crashed run died first.

pub use sa_format::Exit;
use sa_format::visible;

/// Maximum number of processes that one line names.
const NAMED: usize = 8;

/// End of a process that did not close its recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Death {
    /// Number of spans that it left open; `None` if that is unknown because its ring is gone or cannot be read.
    pub open_spans: Option<u64>,
    /// Exit code or signal, if some process waited for it and recorded the result.
    pub exit: Option<Exit>,
    /// Time of its last event, on one clock for all processes.
    pub last_ns: Option<i64>,
}

/// How a process ended that did not close its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathKind {
    /// It was killed by a signal that means a crash, or while spans were open.
    Killed,
    /// It ended by itself with an exit code and left spans open.
    Exited,
    /// It left no span open, for example because of `_exit` or a signal between two spans.
    Idle,
    /// It is not known if it left spans open.
    Unknown,
}

impl Death {
    /// Returns true if the process is known to have exited with a code, or by a signal that is used for a normal shutdown.
    pub fn is_orderly(&self) -> bool {
        self.exit.as_ref().is_some_and(|exit| !exit.is_crash())
    }

    /// Returns how the process ended. If nobody recorded its exit status, open spans mean that it was killed.
    pub fn kind(&self) -> DeathKind {
        let left_open = self.open_spans.is_some_and(|open| open > 0);
        match &self.exit {
            Some(Exit::Code(_)) if left_open => DeathKind::Exited,
            Some(exit) if left_open || exit.is_crash() => DeathKind::Killed,
            None if left_open => DeathKind::Killed,
            _ if self.open_spans.is_none() => DeathKind::Unknown,
            _ => DeathKind::Idle,
        }
    }

    /// Returns true if the process was killed.
    pub fn is_kill(&self) -> bool {
        self.kind() == DeathKind::Killed
    }
}

/// Returns the processes that were killed, with the first one to die at the front: the one whose last event is the earliest, because the others kept
/// recording. Processes that ended by a normal shutdown signal (SIGTERM, SIGINT) come last.
pub fn first_killed<T>(processes: impl IntoIterator<Item = (T, Death)>) -> Vec<(T, Death)> {
    let killed = processes.into_iter().filter(|(_, death)| death.is_kill());
    let mut killed: Vec<(T, Death)> = killed.collect();
    killed.sort_by_key(|(_, death)| sort_key(death));
    killed
}

fn sort_key(death: &Death) -> (bool, i64) {
    (death.is_orderly(), death.last_ns.unwrap_or(i64::MAX))
}

/// A process that did not close its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadProcess {
    /// Name of the process as it was recorded.
    pub name: String,
    /// Process id on the host where it ran.
    pub pid: i64,
    /// End of the process.
    pub death: Death,
}

impl DeadProcess {
    /// Describes the process and how it ended: `worker-0 (pid 4711), by SIGKILL, in 4 open spans`.
    fn description(&self) -> String {
        let mut words = format!("{} (pid {})", visible(&self.name), self.pid);
        if let Some(exit) = &self.death.exit {
            words += &format!(", {}", visible(&exit.text()));
        }
        match self.death.open_spans {
            None | Some(0) => {}
            Some(1) => words += ", in 1 open span",
            Some(open) => words += &format!(", in {open} open spans"),
        }
        words
    }
}

/// Processes that did not close their recordings. The one that died first is at the front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deaths(Vec<DeadProcess>);

impl FromIterator<DeadProcess> for Deaths {
    fn from_iter<I: IntoIterator<Item = DeadProcess>>(processes: I) -> Deaths {
        let mut processes: Vec<DeadProcess> = processes.into_iter().collect();
        processes.sort_by_key(|process| sort_key(&process.death));
        Deaths(processes)
    }
}

impl Deaths {
    fn by_kind(&self, kind: DeathKind) -> Vec<&DeadProcess> {
        let is_kind = |process: &&DeadProcess| process.death.kind() == kind;
        self.0.iter().filter(is_kind).collect()
    }

    /// Returns the process that was killed first.
    pub fn first_killed(&self) -> Option<&DeadProcess> {
        self.0.iter().find(|process| process.death.is_kill())
    }

    /// Lists the processes that were killed, with the first one to die at the front; `None` if there are none.
    pub fn killed_text(&self) -> Option<String> {
        let killed = self.by_kind(DeathKind::Killed);
        let (first, others) = killed.split_first()?;
        let first = first.description();
        Some(match others {
            [] => format!("killed: {first}"),
            _ => format!(
                "killed: first {first}; then {}",
                list_names(others, NAMED - 1)
            ),
        })
    }

    /// Lists the processes that ended by themselves and left spans open; `None` if there are none.
    pub fn exited_text(&self) -> Option<String> {
        let (group, names) = self.group(DeathKind::Exited)?;
        let themselves = if group.len() == 1 {
            "itself"
        } else {
            "themselves"
        };
        Some(format!("ended by {themselves} with spans open: {names}"))
    }

    /// Lists the processes that ended with no span open, and those for which it is unknown. Returns one line for each kind.
    pub fn other_lines(&self) -> Vec<String> {
        let kinds = [
            (
                DeathKind::Idle,
                ", with no span open (_exit, or a signal between two spans)",
            ),
            (
                DeathKind::Unknown,
                "; it is not known whether spans were open, because the ring is gone or cannot be read",
            ),
        ];
        let words = |(kind, spans)| {
            let (group, names) = self.group(kind)?;
            let recordings = if group.len() == 1 {
                "its recording"
            } else {
                "their recordings"
            };
            Some(format!(
                "ended without closing {recordings}{spans}: {names}"
            ))
        };
        kinds.into_iter().filter_map(words).collect()
    }

    /// Returns the processes that ended in one way, and their names; `None` if there are none.
    fn group(&self, kind: DeathKind) -> Option<(Vec<&DeadProcess>, String)> {
        let group = self.by_kind(kind);
        let names = list_names(&group, NAMED);
        (!group.is_empty()).then_some((group, names))
    }

    /// Returns the report lines about processes that did not close their recordings, one for each kind of end.
    pub fn lines(&self) -> Vec<String> {
        let first = self.killed_text().into_iter().chain(self.exited_text());
        first.chain(self.other_lines()).collect()
    }
}

/// Describes up to `most` processes in one line and counts the others.
fn list_names(processes: &[&DeadProcess], most: usize) -> String {
    let named = processes.iter().take(most);
    let mut words: Vec<String> = named.map(|process| process.description()).collect();
    if let Some(more) = processes.len().checked_sub(most).filter(|more| *more > 0) {
        words.push(format!("and {more} more"));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(pid: i64, open_spans: Option<u64>, exit: Option<Exit>) -> DeadProcess {
        DeadProcess {
            name: format!("worker-{pid}"),
            pid,
            death: Death {
                open_spans,
                exit,
                last_ns: Some(100 - pid),
            },
        }
    }

    #[test]
    fn issue_47_each_kind_of_end_has_its_line() {
        let signal = |name: &str| Some(Exit::Signal(name.to_owned()));
        let deaths = Deaths::from_iter([
            dead(1, Some(0), signal("SIGKILL")),
            dead(2, Some(0), signal("SIGTERM")),
            dead(3, Some(2), signal("SIGSEGV")),
            dead(4, Some(1), Some(Exit::Code(1))),
            dead(5, Some(0), None),
            dead(6, Some(1), None),
            dead(7, None, None),
            dead(8, None, signal("SIGKILL")),
            dead(9, None, Some(Exit::Code(0))),
            dead(10, Some(3), Some(Exit::Code(2))),
        ]);
        let expected = [
            "killed: first worker-8 (pid 8), by SIGKILL; then worker-6 (pid 6), in 1 open span; worker-3 (pid 3), by SIGSEGV, in 2 open spans; worker-1 (pid 1), by SIGKILL",
            "ended by themselves with spans open: worker-10 (pid 10), with exit code 2, in 3 open spans; worker-4 (pid 4), with exit code 1, in 1 open span",
            "ended without closing their recordings, with no span open (_exit, or a signal between two spans): worker-5 (pid 5); worker-2 (pid 2), by SIGTERM",
            "ended without closing their recordings; it is not known whether spans were open, because the ring is gone or cannot be read: worker-7 (pid 7); worker-9 (pid 9), with exit code 0",
        ];
        assert_eq!(deaths.lines(), expected);
        assert_eq!(deaths.first_killed().map(|first| first.pid), Some(8));
        let one = Deaths::from_iter([dead(4, Some(1), Some(Exit::Code(1)))]);
        let expected =
            "ended by itself with spans open: worker-4 (pid 4), with exit code 1, in 1 open span";
        assert_eq!(one.lines(), [expected]);
        assert_eq!(Deaths::default().lines(), [""; 0]);
    }

    #[test]
    fn a_line_names_a_few_processes_and_counts_the_others() {
        for (open_spans, before) in [(1, 1), (0, 0)] {
            let deaths = (0..11).map(|pid| dead(pid, Some(open_spans), None));
            let line = Deaths::from_iter(deaths).lines().join("\n");
            assert_eq!(line.matches("worker-").count(), NAMED, "{line}");
            assert!(line.ends_with("; and 3 more"), "{line}");
            assert_eq!(line.matches("first ").count(), before, "{line}");
        }
    }
}
