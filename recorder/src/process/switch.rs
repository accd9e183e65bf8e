//! When this process records what: the controls it was given, in the order of their instants, and the records that report each switch.
//!
//! Whoever comes by first follows them. That is the helper, which looks four times a second, or a thread that records. Threads look in a process
//! without a helper, and where the helper is late. It may wait for the disk, for seconds where many write as fast as they can: just when somebody
//! stops them.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::process::mask;
use crate::process::state::Process;
use crate::run::config::Levels;
use crate::run::control::Watch;
use crate::segment::tally::Tally;
use crate::sys::memory::look_for_room;
use crate::sys::{self, clock, wait};
use crate::text::record::Growing;
use sa_format::control::{CONTROL_VERSION, Control, Switch, SwitchCause};
use sa_format::{Anchor, InstantPlace, write_instant};

/// How often the file is looked at.
const LOOK_NS: u64 = 250_000_000;
/// While events or steps are counted: how often the count and the file are looked at.
const COUNTING_NS: u64 = 50_000_000;
/// How far ahead the instant lies at which all processes stop after the last step: each looks at the file sooner then.
const STEPS_LEAD_NS: u64 = 100_000_000;

/// Room for what reading a control takes, and planning what it asks for.
const CONTROL_BYTES: usize = 96 << 10;

/// What is in force in this process; the child of a fork goes on with it.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    levels: AtomicU32,
    /// When recording stops again, in ns of the monotonic clock; 0 for never.
    until_ns: AtomicU64,
}

impl InForce {
    /// What the environment asks for.
    pub(crate) fn new(levels: Levels) -> InForce {
        InForce {
            levels: AtomicU32::new(levels.0),
            ..InForce::default()
        }
    }

    /// What is in force in another process, the parent.
    pub(crate) fn copy(&self) -> InForce {
        InForce {
            until_ns: AtomicU64::new(self.until_ns.load(Ordering::Relaxed)),
            ..InForce::new(self.levels())
        }
    }

    /// The levels.
    pub(crate) fn levels(&self) -> Levels {
        Levels(self.levels.load(Ordering::Relaxed))
    }
}

/// A switch that is to come.
#[derive(Debug)]
struct Due {
    at_ns: u64,
    levels: Levels,
    cause: SwitchCause,
    control: Option<String>,
    until_ns: u64,
    tally: Option<Tally>,
}

impl Due {
    fn stop(at_ns: u64, cause: SwitchCause, control: Option<String>) -> Due {
        Due {
            at_ns,
            levels: Levels::NONE,
            cause,
            control,
            until_ns: 0,
            tally: None,
        }
    }
}

/// The switches of a process.
#[derive(Debug)]
pub(crate) struct Switches {
    schedule: Mutex<Schedule>,
    /// When there is something to do next, in ns; the largest number before the recorder began.
    next_ns: AtomicU64,
    /// A control is in force or about to be, or levels are off: the events may not come by in time, or at all.
    need_a_thread: AtomicBool,
}

impl Switches {
    /// Those of a recorder that has not begun, which obeys the controls of these runs.
    pub(crate) fn new(directory: &Path, runs: Vec<String>) -> Switches {
        Switches {
            schedule: Mutex::new(Schedule::new(directory, runs)),
            next_ns: AtomicU64::new(u64::MAX),
            need_a_thread: AtomicBool::new(false),
        }
    }

    /// Begins with what is in force, or with what a control of this run asks for.
    pub(crate) fn begin(&self, process: &Process) {
        if let Some(mut schedule) = wait::try_lock(&self.schedule) {
            schedule.begin(process);
            self.note(&schedule, process);
        }
    }

    /// Whether something has been due for so long.
    pub(crate) fn is_late(&self, by_ns: u64) -> bool {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        clock::now_ns() >= next_ns.saturating_add(by_ns)
    }

    /// Follows what is due, unless another thread does.
    pub(crate) fn follow(&self, process: &Process) {
        if !self.is_late(0) {
            return;
        }
        if let Some(mut schedule) = wait::try_lock(&self.schedule) {
            schedule.follow(process);
            self.note(&schedule, process);
        }
    }

    /// Whether only a thread of the recorder's own can follow them in time.
    pub(crate) fn need_a_thread(&self) -> bool {
        self.need_a_thread.load(Ordering::Relaxed)
    }

    /// How long there is nothing to do.
    pub(crate) fn pause_ns(&self) -> u64 {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        next_ns.saturating_sub(clock::now_ns())
    }

    fn note(&self, schedule: &Schedule, process: &Process) {
        let is_plain = schedule.due.is_empty()
            && schedule.control.is_none()
            && process.in_force.levels() == process.config.levels;
        self.need_a_thread.store(!is_plain, Ordering::Relaxed);
        self.next_ns.store(schedule.next_ns(), Ordering::Relaxed);
    }
}

/// What is planned; whoever has the lock follows it.
#[derive(Debug)]
struct Schedule {
    watch: Watch,
    next_look_ns: u64,
    /// By their instants.
    due: Vec<Due>,
    /// Id of the control in force.
    control: Option<String>,
    counting: bool,
}

impl Schedule {
    fn new(directory: &Path, runs: Vec<String>) -> Schedule {
        Schedule {
            watch: Watch::new(directory, runs),
            next_look_ns: 0,
            due: Vec::new(),
            control: None,
            counting: false,
        }
    }

    fn begin(&mut self, process: &Process) {
        let until_ns = process.in_force.until_ns.load(Ordering::Relaxed);
        if until_ns > 0 {
            self.due.push(Due::stop(until_ns, SwitchCause::For, None));
        }
        let levels = process.in_force.levels();
        mask::open(process.epoch(), levels);
        if !self.follow(process) && levels == Levels::NONE {
            let paused = Due::stop(0, SwitchCause::Paused, None);
            tell(process, clock::now_ns(), &paused);
        }
    }

    /// Looks whether it is time to look at the file, or to switch; tells whether it switched.
    fn follow(&mut self, process: &Process) -> bool {
        let now_ns = clock::now_ns();
        if now_ns >= self.next_look_ns {
            let look_ns = if self.counting { COUNTING_NS } else { LOOK_NS };
            self.next_look_ns = now_ns + look_ns;
            self.look(process);
        }
        if self.counting {
            self.stop_if_counted(process);
        }
        let due = self.due.partition_point(|due| due.at_ns <= now_ns);
        let last = self.due.drain(..due).next_back(); // a process that comes late skips what is over
        last.is_some_and(|due| {
            self.switch(process, due);
            true
        })
    }

    /// When there is something to do next.
    fn next_ns(&self) -> u64 {
        let due = self.due.first().map_or(u64::MAX, |due| due.at_ns);
        due.min(self.next_look_ns)
    }

    fn look(&mut self, process: &Process) {
        if look_for_room(CONTROL_BYTES).is_err() {
            return; // the next look finds it
        }
        if let Some(control) = self.watch.look() {
            self.plan(&control, process.config.levels, clock::anchor());
        }
    }

    /// Whether what is planned comes from another control than the one in force.
    fn is_superseded(&self) -> bool {
        self.due.iter().any(|due| due.control != self.control)
    }

    /// Puts a control in the place of what was planned from its instant on.
    fn plan(&mut self, control: &Control, configured: Levels, now: Anchor) {
        let at_ns = monotonic_ns(control.from_realtime_ns, now);
        let until_ns = control.until_realtime_ns;
        let until_ns = until_ns.map_or(0, |until| monotonic_ns(until, now));
        self.due.retain(|due| due.at_ns < at_ns);
        let levels = control.levels.as_ref();
        let id = Some(control.id.clone());
        self.due.push(Due {
            at_ns,
            levels: levels.map_or(configured, |levels| Levels::of(levels)),
            cause: control.cause,
            control: id.clone(),
            until_ns,
            tally: Tally::of(control),
        });
        if until_ns > 0 {
            self.due.push(Due::stop(until_ns, SwitchCause::For, id));
        }
    }

    /// Stops this process, or all of them, unless another control is about to take over.
    fn stop_if_counted(&mut self, process: &Process) {
        let Some(cause) = process.fragment.reached() else {
            return;
        };
        self.look(process); // at what the user may have stored just now
        if self.is_superseded() {
            return;
        }
        self.counting = false;
        let now = clock::anchor();
        if cause == SwitchCause::Events {
            self.due = vec![Due::stop(now.monotonic_ns, cause, self.control.clone())];
            return;
        }
        let stop = Control {
            version: CONTROL_VERSION,
            id: format!("{:016x}", sys::random()),
            run: process.run.id.clone(),
            cause,
            levels: Some(Vec::new()),
            from_realtime_ns: now.realtime_ns + STEPS_LEAD_NS,
            ..Control::default()
        };
        // Whether others stop too or not (a full disk), this process does.
        let _ = self.watch.replace(&stop, process.config.mode);
        self.plan(&stop, process.config.levels, now);
    }

    fn switch(&mut self, process: &Process, mut due: Due) {
        self.control.clone_from(&due.control);
        self.counting = due.tally.is_some();
        process.fragment.count(due.tally.take());
        let force = &process.in_force;
        force.levels.store(due.levels.0, Ordering::Relaxed);
        force.until_ns.store(due.until_ns, Ordering::Relaxed);
        let at_ns = mask::set_levels(process.epoch(), due.levels);
        tell(process, at_ns, &due);
    }
}

/// Records a switch, at the instant from which it holds.
fn tell(process: &Process, at_ns: u64, due: &Due) {
    let args = Switch {
        levels: due.levels.list(),
        cause: due.cause,
        control: due.control.clone(),
    };
    let place = InstantPlace {
        pid: process.pid.into(),
        tid: process.pid.into(),
        time_ns: i64::try_from(at_ns).unwrap_or(i64::MAX),
        of_thread: false,
    };
    let mut line = Growing::default();
    let _ = write_instant(&mut line, place, Switch::NAME, &args); // it takes everything
    process.tell(&line.into_line());
}

/// An instant of wall time on the monotonic clock; 1 for what was before it began.
fn monotonic_ns(realtime_ns: u64, now: Anchor) -> u64 {
    let at_ns =
        i128::from(realtime_ns) - i128::from(now.realtime_ns) + i128::from(now.monotonic_ns);
    u64::try_from(at_ns.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Anchor = Anchor {
        monotonic_ns: 1_000,
        realtime_ns: 501_000,
        uncertainty_ns: 1,
    };

    fn control(id: &str, from: u64, until: Option<u64>) -> Control {
        Control {
            id: id.to_owned(),
            cause: SwitchCause::Start,
            from_realtime_ns: from,
            until_realtime_ns: until,
            ..Control::default()
        }
    }

    fn planned(controls: &[Control]) -> Vec<(u64, SwitchCause, String)> {
        let mut schedule = Schedule::new(Path::new("/nowhere"), vec!["r".to_owned()]);
        for control in controls {
            schedule.plan(control, Levels::DEFAULT, NOW);
        }
        let due = schedule.due.into_iter();
        due.map(|due| (due.at_ns, due.cause, due.control.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn wall_time_becomes_monotonic_time() {
        assert_eq!(monotonic_ns(501_007, NOW), 1_007);
        assert_eq!(monotonic_ns(500_500, NOW), 500);
        assert_eq!(monotonic_ns(0, NOW), 1);
        assert_eq!(monotonic_ns(u64::MAX, NOW), u64::MAX - 500_000);
    }

    #[test]
    fn a_later_control_takes_the_place_of_what_was_planned_after_it() {
        use SwitchCause::{For, Start};
        let named = |at: u64, cause, id: &str| (at, cause, id.to_owned());
        let (begun, over) = (named(2_000, Start, "a"), named(3_000, For, "a"));
        for (next, plan) in [
            (None, vec![begun.clone(), over.clone()]),
            (Some(502_500), vec![begun.clone(), named(2_500, Start, "b")]),
            (Some(503_500), vec![begun, over, named(3_500, Start, "b")]),
        ] {
            let first = control("a", 502_000, Some(503_000));
            let next = next.map(|from| control("b", from, None));
            let controls: Vec<_> = [first].into_iter().chain(next).collect();
            assert_eq!(planned(&controls), plan);
        }
    }
}
